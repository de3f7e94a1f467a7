"""The settings as a form in HTML: the simple ones first, the rest folded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import ByteSize
from pydantic.fields import FieldInfo

from chatbot.engine.exchange import Switch
from chatbot.settings import Settings
from chatbot.ui.escape import escape_html as esc
from chatbot.ui.i18n import Language, table, tr
from chatbot.ui.sentences import in_language

Cost = Literal["now", "reload", "restart", "reembed"]
SIMPLE = ("model", "temperature", "reply_tokens")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "reply": ("top_p", "repetition_penalty", "seed", "system_prompt"),
    "memory": (
        "min_recent_turns", "recall_share", "passage_share", "top_k", "summary", "summary_tokens",
    ),
    "machine": (
        "quantization", "window_tokens", "kv_cache_dtype", "kv_cache_bytes", "kv_idle", "threads",
        "max_concurrent_replies", "embedding_model",
    ),
}  # fmt: skip
NAMES = (*SIMPLE, *(name for group in GROUPS.values() for name in group))
LIVE = frozenset(
    {
        "temperature", "reply_tokens", "top_p", "repetition_penalty", "seed", "system_prompt",
        "min_recent_turns", "recall_share", "passage_share", "top_k", "summary", "summary_tokens",
    }
)  # fmt: skip
"""What the next reply, or the next summary, already uses."""
_SUMMARY = ("summary", "summary_tokens")
ENGINE = frozenset(
    {
        "model", "quantization", "window_tokens", "kv_cache_dtype", "kv_cache_bytes", "kv_idle",
        "threads",
    }
)  # fmt: skip
"""What counts once the model is loaded again; all others are read when the program starts."""
MODELS = (
    "demo", "meta-llama/Meta-Llama-3-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.2-3B-Instruct", "meta-llama/Llama-3.2-1B-Instruct",
)  # fmt: skip
"""Names to choose from; any other is possible, too."""
PRESETS = ("default", "brief", "teacher", "strict", "translator")


@dataclass(frozen=True, slots=True)
class Form:
    """What the form shows: values in use, values for the next start, and what was refused."""

    used: Settings
    saved: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    """Texts that were typed and cannot be, by setting."""
    system_text: str = ""
    """Instructions of the chat on the screen; "" for the usual ones."""
    names: tuple[str, ...] = NAMES
    """The settings that this person may change."""
    can_load: bool = False
    """Whether the model can be loaded again while the program runs."""
    switch: Switch | None = None
    """How the last exchange of the model stands."""

    @property
    def pending(self) -> tuple[str, ...]:
        """The settings that wait for the model to be loaded again."""
        return tuple(
            name
            for name in self.names
            if name in ENGINE and self.saved.get(name) not in (None, getattr(self.used, name))
        )


def cost_of(name: str) -> Cost:
    """What a change of a setting costs."""
    if name in LIVE:
        return "now"
    if name in ENGINE:
        return "reload"
    return "reembed" if name == "embedding_model" else "restart"


def options_html(language: Language, form: Form) -> str:
    """The whole form."""
    simple = "".join(_row(language, name, form) for name in SIMPLE if name in form.names)
    groups = "".join(_group(language, name, names, form) for name, names in GROUPS.items())
    return (
        f"<h3>{esc(tr(language, 'settings.title'))}</h3>{_load_html(language, form)}"
        f'<div class="options">{simple}</div>{_system(language, form.system_text)}'
        f'<div class="option-groups">{groups}</div>'
        f'<p class="hint">{esc(tr(language, "settings.hint"))}</p>'
    )


def bounds_of(info: FieldInfo) -> tuple[float | None, float | None]:
    """The least and the greatest value of a number, as far as there are such."""

    def bound(*names: str) -> float | None:
        found = (getattr(m, n) for m in info.metadata for n in names if hasattr(m, n))
        return next(iter(found), None)

    return bound("ge", "gt"), bound("le", "lt")


def allowed_text(language: Language, name: str) -> str:
    """Which values a setting takes, as a sentence of the page."""
    info = Settings.model_fields[name]
    low, high = bounds_of(info)
    if low is not None and high is not None:
        return tr(language, "settings.range", low=f"{low:.15g}", high=f"{high:.15g}")
    if low is not None:
        return tr(language, "settings.least", low=f"{low:.15g}")
    choices = [c for c in get_args(info.annotation) if isinstance(c, str)]
    if choices:
        return tr(language, "settings.choices", choices=", ".join(choices))
    return tr(language, "settings.bytes" if name.endswith("_bytes") else "settings.text")


def _group(language: Language, title: str, names: Sequence[str], form: Form) -> str:
    rows = "".join(_row(language, name, form) for name in names if name in form.names)
    if not rows:
        return ""
    is_open = " open" if set(names) & set(form.refused) else ""
    return (
        f'<details class="option-group" data-group="{title}"{is_open}>'
        f"<summary>{esc(tr(language, f'settings.group_{title}'))}</summary>"
        f'<div class="options">{rows}</div></details>'
    )


def _row(language: Language, name: str, form: Form) -> str:
    label = esc(tr(language, f"option.{name}"))
    cost = cost_of(name)
    told = "summary" if name in _SUMMARY else cost
    notes = [f'<span class="cost {cost}">{esc(tr(language, f"settings.cost_{told}"))}</span>']
    if name in form.saved and cost != "now" and form.saved[name] != getattr(form.used, name):
        key = "pending_load" if cost == "reload" and form.can_load else "pending"
        notes = [f'<span class="cost later">{esc(tr(language, f"settings.{key}"))}</span>']
    error = ""
    if name in form.refused:
        text = esc(allowed_text(language, name))
        error = f'<span class="refused" role="alert" id="refused-{name}">{text}</span>'
    return (
        f'<label class="option" data-name="{name}"><span class="name">{label}</span>'
        f"{_control(name, form, language)}{error}{''.join(notes)}</label>"
    )


def _load_html(language: Language, form: Form) -> str:
    """What loading the model again would change and cost, how far it is, or why it failed."""
    switch = form.switch
    if switch and switch.is_running:
        return f'<div class="load" role="status">{esc(switch_text(language, switch))}</div>'
    failed = ""
    if switch and switch.phase == "failed":
        text = esc(switch_text(language, switch))
        failed = f'<p class="refused" role="alert">{text}</p>'
    if not form.can_load or not form.pending:
        return f'<div class="load">{failed}</div>' if failed else ""
    names = ", ".join(tr(language, f"option.{name}") for name in form.pending)
    text = esc(tr(language, "settings.load_text", names=names))
    return (
        f'<div class="load">{failed}<p>{text}</p><button type="button" class="small" '
        f'data-act="load" id="load-model">{esc(tr(language, "settings.load"))}</button></div>'
    )


def switch_text(language: Language, switch: Switch) -> str:
    """How an exchange of the model stands, as a sentence."""
    message = in_language(language, switch.message)
    text = tr(language, f"switch.{switch.phase}", model=switch.model, message=message)
    share = "" if switch.progress is None else f" {100 * switch.progress:.0f} %"
    return text + share


def _control(name: str, form: Form, language: Language) -> str:
    info = Settings.model_fields[name]
    shown = form.refused.get(name, _shown(form.saved.get(name, getattr(form.used, name))))
    wrong = (
        f' aria-invalid="true" aria-describedby="refused-{name}"' if name in form.refused else ""
    )
    common = f'data-act="setting" data-name="{name}"{wrong}'
    choices = [c for c in get_args(info.annotation) if isinstance(c, str)]
    if choices:
        options = "".join(
            f'<option value="{esc(c)}"{" selected" if c == shown else ""}>'
            f"{esc(table(language).get(f'choice.{name}.{c}', c))}</option>"
            for c in choices
        )
        return f"<select {common}>{options}</select>"
    low, high = bounds_of(info)
    if low is not None or high is not None:
        limits = "".join(
            f' {key}="{value:.15g}"'
            for key, value in (("min", low), ("max", high))
            if value is not None
        )
        step = "any" if float in (info.annotation, *get_args(info.annotation)) else "1"
        return f'<input type="number" {common}{limits} step="{step}" value="{esc(shown)}">'
    if name == "system_prompt":
        return f'<textarea rows="3" {common}>{esc(shown)}</textarea>'
    names = ' list="models"' if name == "model" else ""
    known = "".join(f'<option value="{esc(known)}">' for known in MODELS) if names else ""
    field = f'<input type="text" {common} value="{esc(shown)}" spellcheck="false"{names}>'
    return f'{field}<datalist id="models">{known}</datalist>' if names else field


def _system(language: Language, text: str) -> str:
    """Instructions for the chat on the screen, with some to start from."""
    options = "".join(
        f'<option value="{esc(tr(language, f"preset.{name}_text") if name != "default" else "")}">'
        f"{esc(tr(language, f'preset.{name}'))}</option>"
        for name in PRESETS
    )
    label, presets, cost = (
        esc(tr(language, f"settings.{key}")) for key in ("system", "presets", "cost_prompt")
    )
    return (
        f'<div class="option system"><label><span class="name">{label}</span>'
        f'<textarea rows="4" id="system-text" data-act="system" '
        f'placeholder="{esc(tr(language, "settings.system_usual"))}">{esc(text)}</textarea></label>'
        f'<label class="preset"><span class="name">{presets}</span>'
        f'<select data-act="preset"><option value="" disabled selected>…</option>{options}'
        f'</select></label><span class="cost now">{cost}</span>'
        "</div>"
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, ByteSize):
        # Its own text would be rounded.
        return str(int(value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
