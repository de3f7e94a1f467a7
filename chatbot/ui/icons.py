"""Line icons as inline SVG (drawn here, since icon fonts and emoji may be missing)."""

from __future__ import annotations

_PATHS = {
    "copy": '<rect x="6" y="6" width="8.5" height="8.5" rx="2"/>'
    '<path d="M10.5 3.5v-.3A1.7 1.7 0 0 0 8.8 1.5H3.2a1.7 1.7 0 0 0-1.7 1.7v5.6a1.7 1.7 0 0 0 '
    '1.7 1.7h.3"/>',
    "retry": '<path d="M13.5 8a5.5 5.5 0 1 1-1.7-4"/><path d="M13.7 1.6v3.2h-3.2"/>',
    "info": '<circle cx="8" cy="8" r="6.2"/><path d="M8 7.3v3.6M8 4.9v.1"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "edit": '<path d="m10.8 2.7 2.5 2.5-7.6 7.6-3.2.7.7-3.2z"/>',
    "bin": '<path d="M2.8 4.3h10.4M6.3 4.3V2.6h3.4v1.7M4.2 4.3l.6 9h6.4l.6-9"/>',
    "menu": '<path d="M2.5 4h11M2.5 8h11M2.5 12h11"/>',
    "close": '<path d="m4 4 8 8M12 4l-8 8"/>',
    "file": '<path d="M9.2 1.8H4.3a1 1 0 0 0-1 1v10.4a1 1 0 0 0 1 1h7.4a1 1 0 0 0 1-1V5.3z"/>'
    '<path d="M9 2v3.5h3.6"/>',
    "upload": '<path d="M8 10.5v-8M4.8 5.4 8 2.2l3.2 3.2"/><path d="M2.5 10.5v3h11v-3"/>',
    "export": '<path d="M8 2.5v8M4.8 7.6 8 10.8l3.2-3.2"/><path d="M2.5 10.5v3h11v-3"/>',
    "panel": '<rect x="1.8" y="2.8" width="12.4" height="10.4" rx="2"/><path d="M10 3v10"/>',
    "theme": '<path d="M13.6 9.6A6 6 0 0 1 6.4 2.4a6 6 0 1 0 7.2 7.2z"/>',
    "pin": '<path d="M9.7 1.9 14.1 6.3l-1.2.4-2.6 2.6.2 3-1 1-6.8-6.8 1-1 3 .2 2.6-2.6z"/>'
    '<path d="M5.4 10.6 1.9 14.1"/>',
    "forget": '<path d="M5.9 13.4h7.6M3 9.2l6.4-6.4a1.3 1.3 0 0 1 1.9 0l2 2a1.3 1.3 0 0 1 0 1.9'
    'l-6.6 6.7H5.6L3 10.9a1.2 1.2 0 0 1 0-1.7z"/><path d="m6.3 6 3.9 3.9"/>',
    "sliders": '<path d="M2 4.6h5.6M11.4 4.6H14M2 11.4h2.6M8.4 11.4H14"/>'
    '<circle cx="9.5" cy="4.6" r="1.9"/><circle cx="6.5" cy="11.4" r="1.9"/>',
    "search": '<circle cx="7" cy="7" r="4.4"/><path d="m10.3 10.3 3.5 3.5"/>',
    "help": '<rect x="1.5" y="4" width="13" height="8.5" rx="1.8"/>'
    '<path d="M4.2 6.8h.1M6.7 6.8h.1M9.2 6.8h.1M11.7 6.8h.1M5 9.8h6"/>',
    "import": '<path d="M1.8 12.4V4.2a1 1 0 0 1 1-1h3.1l1.5 1.7h5.3a1 1 0 0 1 1 1v1.3"/>'
    '<path d="M1.8 12.4 3.9 7.2h10.8l-2 5.2a.7.7 0 0 1-.6.4H2.3a.5.5 0 0 1-.5-.4z"/>',
    "left": '<path d="M9.8 3.5 5.3 8l4.5 4.5"/>',
    "right": '<path d="M6.2 3.5 10.7 8l-4.5 4.5"/>',
    "out": '<path d="M6.5 2.5h-3a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h3M10.5 11l3-3-3-3M13.5 8h-7"/>',
    "test": '<path d="M6 1.8h4M6.8 1.8v4L3 12.4a1.2 1.2 0 0 0 1 1.8h8a1.2 1.2 0 0 0 1-1.8'
    'L9.2 5.8v-4M4.7 10h6.6"/>',
}


def icon(name: str) -> str:
    """The icon `name`; KeyError if there is none. Hidden from screen readers: label its button."""
    return (
        '<svg class="icon" viewBox="0 0 16 16" width="16" height="16" fill="none" '
        'stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" '
        f'aria-hidden="true">{_PATHS[name]}</svg>'
    )
