"""`library move`: brings the documents from the data folder to Milvus, or back, and checks them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

from chatbot.commands.common import add_json, counted
from chatbot.console import Console
from chatbot.errors import InputError
from chatbot.open_marks import open_elsewhere
from chatbot.parts import catalogue_location
from chatbot.settings import Settings
from retrieval.catalogue_numbers import owners_of
from retrieval.exchange import ExchangeStore
from retrieval.index import Index
from retrieval.milvus_exchange import MovableMilvus
from retrieval.milvus_link import parse_address
from retrieval.milvus_place import MilvusPlace
from retrieval.move import MoveReport, check, move
from retrieval.types import RetrievalError

LOCAL = "local"
PERSON = "person:"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["move"], help="what to do with the library")
    parser.add_argument(
        "--to",
        required=True,
        metavar="URL",
        help=f"a Milvus server or a file that ends in .db; '{LOCAL}': from --vector-url back into "
        "the data folder",
    )
    parser.add_argument(
        "--remove-source",
        action="store_true",
        help="delete the documents where they were, after the check has passed",
    )
    parser.add_argument(
        "--replace-target",
        action="store_true",
        help="delete what the target holds and the library that is moved does not",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Exit code 1 when the check finds that something is missing; the source is kept then."""
    back = arguments.to == LOCAL
    if back and settings.vector_url is None:
        raise InputError(f"For --to {LOCAL}, give --vector-url as the place to move from.")
    if not back and settings.vector_url is not None:
        raise InputError(_by_way_of_here(settings, arguments.to))
    url = settings.vector_url.get_secret_value() if settings.vector_url else arguments.to
    if back:
        _check_there(url)
    _note_open(settings, console)
    passed = True
    with ExitStack() as stack:
        place = MilvusPlace(url, catalogue_location(settings))
        place.hold()
        stack.callback(place.release)
        for owner in _owners(settings, place, back=back):
            report = _moved(settings, place, owner, arguments, console)
            passed = passed and not report.faults
            _tell(report, owner, console, as_json=arguments.json)
    if passed:
        where = "without --vector-url" if back else "with this address as --vector-url"
        console.note(f"All documents are there; start the program {where} from now on.")
    removed = passed and arguments.remove_source
    console.note(
        "They were deleted where they were."
        if removed
        else "They are kept where they were, too; --remove-source deletes them there."
        if passed
        else "Where they were, they are kept."
    )
    return 0 if passed else 1


def _check_there(url: str) -> None:
    """Raise InputError for a file to move from that is not there: opening it would make one."""
    address = parse_address(url)
    if address.is_file and not Path(address.uri).exists():
        raise InputError(f"There is no vector file {address.shown}; correct --vector-url.")


def _note_open(settings: Settings, console: Console) -> None:
    """Warn of programs that may change the library during the move."""
    numbers = open_elsewhere(settings.data_dir)
    if numbers:
        listed = ", ".join(map(str, numbers))
        console.note(
            f"The program is open on this data folder (process {listed}); better stop it and "
            "move again: what changes meanwhile is not moved, and until it is started anew it goes "
            "on with the documents where they were."
        )


def _by_way_of_here(settings: Settings, target: str) -> str:
    """How documents get from one address to another."""
    assert settings.vector_url is not None
    source = parse_address(settings.vector_url.get_secret_value()).shown
    return (
        "The library is in Milvus by --vector-url already; move it back first, then on: "
        f"library move --to {LOCAL} --vector-url {source}, then without --vector-url: "
        f"library move --to {parse_address(target).shown}"
    )


def _moved(
    settings: Settings,
    place: MilvusPlace,
    owner: str,
    arguments: argparse.Namespace,
    console: Console,
) -> MoveReport:
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(closing(store))
            for store in _stores(settings, place, owner, back=arguments.to == LOCAL)
        )
        moved = move(
            source,
            target,
            lambda name, done, total: console.progress(f"{done} of {total}: {name}"),
            replace=arguments.replace_target,
        )
        report = check(source, target, moved=moved)
        if arguments.remove_source and not report.faults:
            for info in source.documents():
                source.delete(info.id)
        return report


def _stores(
    settings: Settings, place: MilvusPlace, owner: str, *, back: bool
) -> tuple[ExchangeStore, ExchangeStore]:
    """Source and target, both for the embedding model whose vectors the source has."""
    path = _index_file(settings, owner)
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(Index(path)) as local, closing(MovableMilvus(place, owner=owner)) as remote:
        name = _embedder_of(remote if back else local)
    local, remote = Index(path, embedder=name), MovableMilvus(place, embedder=name, owner=owner)
    return (remote, local) if back else (local, remote)


def _embedder_of(store: ExchangeStore) -> str:
    infos = store.documents()
    if infos and (lost := store.lost()).ids:
        raise RetrievalError(lost.sentence)  # of all of them, before one is looked at
    for info in infos:
        exported = store.export(info.id)
        if exported is not None and exported.embedder:
            return exported.embedder
    return ""


def _owners(settings: Settings, place: MilvusPlace, *, back: bool) -> Iterator[str]:
    """Whose libraries there are to move: the common one, and those of people."""
    if back:
        yield from owners_of(place.database)
        return
    yield ""
    for folder in sorted((settings.data_dir / "people").glob("*/library/index.db")):
        yield PERSON + folder.parent.parent.name


def _index_file(settings: Settings, owner: str) -> Path:
    home = settings.data_dir
    if owner:
        home = home / "people" / owner.removeprefix(PERSON)
    return home / "library" / "index.db"


def _tell(report: MoveReport, owner: str, console: Console, *, as_json: bool) -> None:
    if as_json:
        console.json({"owner": owner.removeprefix(PERSON), **asdict(report)})
        return
    whose = f"{owner.removeprefix(PERSON)}: " if owner else ""
    console.result(
        f"{whose}{counted(report.documents, 'document')} with {counted(report.chunks, 'chunk')}; "
        f"{report.moved} moved now; {counted(report.windows, 'vector')} and "
        f"{report.searches} searches compared, {report.agreement:.1%} alike."
    )
    for fault in report.faults:
        console.result(fault)
