"""Reads mails (EML, MSG): who, when, about what, and the text. Fetches and opens nothing."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from oxmsg import Message as OutlookMessage

from retrieval.loaders.encoding import decode
from retrieval.loaders.html_page import html_text
from retrieval.loaders.parsed import Parsed, whole
from retrieval.types import LoadError

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_OLE = b"\xd0\xcf\x11\xe0"
_MAX_DEPTH = 5


def read(path: Path, max_pages: int) -> Parsed:
    """One mail with those that it forwards; attachments are named, not read."""
    data = path.read_bytes()
    if data.startswith(_OLE):
        return _outlook(path)
    message = email.message_from_bytes(data, policy=email.policy.default)
    if not isinstance(message, EmailMessage) or not message.keys():
        raise LoadError("This file is not a mail: it has no header lines.")
    attached: list[str] = []
    text = "\n\n".join(_mail(message, attached, 0))
    return whole(text, _not_read(attached))


def _mail(message: EmailMessage, attached: list[str], depth: int) -> Iterator[str]:
    subject = _header(message, "Subject")
    yield f"# {subject}" if subject else "# Mail"
    yield "\n".join(f"{name}: {value}" for name in _HEADERS if (value := _header(message, name)))
    if depth >= _MAX_DEPTH:
        attached.append("mails forwarded within each other")
        return
    body = message.get_body(preferencelist=("plain", "html"))
    inside = set() if body is None else {id(body)}
    if isinstance(body, EmailMessage) and (text := _text(body)):
        yield text
    for part in _others(message, inside):
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0) if part.is_multipart() else None
            if isinstance(inner, EmailMessage):
                yield from _mail(inner, attached, depth + 1)
        elif not part.is_multipart():
            attached.append(part.get_filename() or part.get_content_type())


def _others(message: EmailMessage, inside: set[int]) -> Iterator[EmailMessage]:
    """Attachments; the other forms of the text and pictures in it are none."""
    for part in message.iter_attachments():
        if isinstance(part, EmailMessage) and id(part) not in inside:
            yield part


def _header(message: EmailMessage, name: str) -> str:
    """Headers may be damaged in ways that the library's parser trips over."""
    try:
        value = message.get(name, "")
    except (ValueError, IndexError, AttributeError, TypeError):
        value = dict(message.raw_items()).get(name, "")
    return " ".join(str(value).split())


def _text(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes) or not payload.strip():
        return ""
    charset = part.get_content_charset() or None
    declared = "cp949" if charset in {"ks_c_5601-1987", "euc-kr", "euc_kr"} else charset
    if part.get_content_subtype() == "html":
        return html_text(payload, declared)
    return decode(payload, declared).text.strip()


def _outlook(path: Path) -> Parsed:
    message = OutlookMessage.load(str(path))
    if message.message_class and not str(message.message_class).upper().startswith("IPM"):
        raise LoadError("This file is no Outlook mail, whatever its name says.")
    recipients = ", ".join(_address(one.name, one.email_address) for one in message.recipients)
    sent = message.sent_date.isoformat(sep=" ") if message.sent_date else ""
    rows = {
        "From": message.sender or "",
        "To": recipients,
        "Date": sent,
        "Subject": message.subject or "",
    }
    head = "\n".join(f"{name}: {' '.join(value.split())}" for name, value in rows.items() if value)
    blocks = [f"# {' '.join((message.subject or 'Mail').split())}", head, _outlook_body(message)]
    attached = [one.file_name or "without a name" for one in message.attachments]
    return whole("\n\n".join(filter(None, blocks)), _not_read(attached))


def _outlook_body(message: Any) -> str:
    if (message.body or "").strip():
        return str(message.body).replace("\r\n", "\n").strip()
    if (message.html_body or "").strip():
        return html_text(str(message.html_body).encode(), "utf-8")
    return ""


def _address(name: str | None, address: str | None) -> str:
    return f"{name} <{address}>" if name and address and name != address else name or address or ""


def _not_read(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    return (f"Files attached to this mail were not read: {', '.join(names)}.",)
