"""What happens on each event of the page: checks what came in, calls a service, draws again.

Everything that a browser sends is checked here, since its endpoints can be called by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from chatbot.errors import ChatbotError
from chatbot.services import Services
from chatbot.ui.asks import Asks
from chatbot.ui.calls import Call, files_of, rejected_of, text_of
from chatbot.ui.chat_acts import ChatActs
from chatbot.ui.desk import Desk, Tab
from chatbot.ui.i18n import pick_language, tr
from chatbot.ui.inbox import Inbox
from chatbot.ui.ingest_jobs import IngestJobs
from chatbot.ui.memory_acts import MemoryActs
from chatbot.ui.options import Options
from chatbot.ui.replies import Replies, warn
from chatbot.ui.screen import Screen, Updates
from chatbot.ui.sentences import in_language
from retrieval.types import RetrievalError

MAX_SYSTEM_CHARACTERS = 20_000


class Handlers:
    """The events of the page. Keeps nothing of a person but in the desk and the services."""

    def __init__(self, services: Services, inbox: Inbox, user: str = "") -> None:
        """`user` is who has logged in; "" where nobody does."""
        self.services = self._services = services
        self._inbox = inbox
        self.desk = Desk()
        self.jobs = IngestJobs(services.library, services.store)
        self._options = Options(services)
        self.screen = Screen(services, self.desk, self.jobs, self._options, user=user)
        self.asks = Asks(services, self.screen)
        self._replies = Replies(services, self.desk, self.jobs, self.screen)
        self._actions: dict[str, Callable[[Call, Tab], Updates]] = {
            "use": self._use,
            "use-all": self._use_all,
            "remove": self._remove,
            "dismiss": self._dismiss,
            "setting": self._setting,
            "system": self._system,
            "load": self._load,
            "use-demo": self._use_demo,
            "switch-dismiss": self._dismiss_switch,
            **ChatActs(services, self.desk, self.screen, inbox).table(),
            **MemoryActs(services, self.desk, self.screen).table(),
        }

    def close(self) -> None:
        """Stop all replies and the reading of files."""
        self.desk.stop_all()
        self.jobs.close()

    # Events

    def load(self, call: Call, chosen: str, accept: str) -> Updates:
        """The page was opened: the chat of its address, in the person's language."""
        setting = self._services.settings.language
        language = pick_language(chosen=chosen, setting=setting, accept=accept)
        wanted = call.conversation_id
        tab = Tab(wanted if self.screen.conversation(wanted) else "", language)
        if wanted and not tab.conversation_id:
            warn(tr(language, "warn.no_chat"))
        return self.screen.whole(self.desk.show(call.session, tab), call.session)

    def send(self, call: Call, text: object) -> Iterator[Updates]:
        """Send was pressed."""
        yield from self._replies.send(call.session, self._tab(call), str(text or ""))

    def retry(self, call: Call) -> Iterator[Updates]:
        """Retry was pressed."""
        yield from self._replies.retry(call.session, self._tab(call))

    def stop(self, call: Call) -> None:
        """Stop was pressed; the reply then ends by itself and draws the page."""
        if not self.desk.stop(self._tab(call).conversation_id):
            # A late update can have put a chat on the page again that the tab had left.
            self.desk.stop(call.conversation_id)

    def edit(self, call: Call) -> Iterator[Updates]:
        """An earlier question was written anew."""
        turn_id, text = call.id("turn"), text_of(call)
        yield from self._replies.edit(call.session, self._tab(call), turn_id, text)

    def act(self, call: Call) -> Updates:
        """A button was pressed; the data say which. What cannot be done is told, and nothing
        has changed then."""
        action = self._actions.get(str(call.data.get("act", "")))
        tab = self._tab(call)
        try:
            return action(call, tab) if action else {}
        except (ChatbotError, RetrievalError) as error:
            warn(in_language(tab.language, str(error)))
            return self.screen.side(tab)

    def uploaded(self, call: Call) -> Iterator[Updates]:
        """Files have come in: read them, and show how far each is until all are read."""
        tab = self._tab(call)
        files = files_of(call, self._inbox)
        rejected = rejected_of(call, tab.language, self._services.settings.max_upload_mb)
        if not files and not rejected:
            return
        tab = self._begun(call, tab)
        cid = tab.conversation_id
        for name, message in rejected:
            self.jobs.reject(cid, name, message)
        self.jobs.start(cid, files)
        yield {"cid": cid, **self.screen.side(tab)}
        seen = self.jobs.rows(cid)
        while self.jobs.reading(cid):
            self.jobs.wait(cid, seen, 1.0)
            seen = self.jobs.rows(cid)
            now = self.desk.tab(call.session)
            if now.conversation_id == cid:
                yield {"documents": self.screen.documents(now, self.screen.conversation(cid))}
            else:
                yield {}
        yield self._lists(call, self.desk.tab(call.session))

    def tick(self, call: Call) -> Updates:
        """A second has passed while the model loads or another tab is being answered."""
        tab = self._tab(call)
        conversation = self.screen.conversation(tab.conversation_id)
        ticket = self.desk.running(tab.conversation_id)
        update: Updates = {
            "status": self.screen.status(tab),
            "top": self.screen.top(tab, conversation),
        }
        if ticket is None or ticket.session != call.session:
            update |= self.screen.chat(tab, call.session, conversation)
        return update | self._exchange(call, tab)

    def _exchange(self, call: Call, tab: Tab) -> Updates:
        """The settings anew when an exchange of the model has come further, not at each step:
        someone may be typing in them."""
        phase = self.screen.phase()
        if phase == tab.phase:
            return {}
        return {
            "settings": self.screen.settings(
                self.desk.show(call.session, replace(tab, phase=phase))
            )
        }

    def after_fold(self, call: Call) -> Updates:
        """Wait until old turns are folded, then show the line and the summary."""
        if turned := self.after_act(call):
            return turned
        before = self.screen.conversation(self._tab(call).conversation_id)
        self._services.chat.wait_for_folds(60.0)
        tab = self._tab(call)
        after = self.screen.conversation(tab.conversation_id)
        same = before and after and before.id == after.id and before.summary == after.summary
        if same or after is None or self.desk.running(after.id):
            return {}
        return self.screen.chat(tab, call.session, after)

    def after_act(self, call: Call) -> Updates:
        """An answer was drawn. Of two that are on their way at once, the older one may come last;
        then draw the chat that the tab has turned to."""
        tab = self._tab(call)
        is_shown = call.conversation_id == tab.conversation_id
        return {} if is_shown else self.screen.whole(tab, call.session)

    def redraw(self, call: Call) -> Updates:
        """Something failed: show what is stored, with Send in place."""
        return self.screen.whole(self._tab(call), call.session)

    # Settings and documents

    def _setting(self, call: Call, tab: Tab) -> Updates:
        name, typed = str(call.data.get("name", "")), text_of(call)
        refused = {} if self._changed(tab, name, typed) else {name: typed}
        return {"settings": self.screen.settings(tab, refused)}

    def _changed(self, tab: Tab, name: str, typed: str) -> bool:
        """False for a value that cannot be; one that cannot be kept is told."""
        try:
            return self._options.change(name, typed)
        except OSError as error:
            warn(tr(tab.language, "settings.not_saved", reason=error.strerror or error))
            return True

    def _use_demo(self, call: Call, tab: Tab) -> Updates:
        """The way past a model that cannot be loaded."""
        if self._options.can_use_demo:
            self._changed(tab, "model", "demo")
        return self._load(call, tab)

    def _load(self, call: Call, tab: Tab) -> Updates:
        """Load the model again with what was changed; the ticks then tell how far it is."""
        self._options.load()
        shown = self.desk.show(call.session, replace(tab, phase=self.screen.phase()))
        return self.screen.whole(shown, call.session)

    def _dismiss_switch(self, call: Call, tab: Tab) -> Updates:
        self._options.dismiss()
        return {"status": self.screen.status(tab), "settings": self.screen.settings(tab)}

    def _system(self, call: Call, tab: Tab) -> Updates:
        """Other instructions for the chat on the screen, which begins with them if need be."""
        text = text_of(call)[:MAX_SYSTEM_CHARACTERS]
        tab = self._begun(call, tab)
        self._services.store.set_system_text(tab.conversation_id, text)
        return {"cid": tab.conversation_id, "settings": self.screen.settings(tab)}

    def _use(self, call: Call, tab: Tab) -> Updates:
        known = {document.id for document in self._services.library.documents()}
        if call.id() not in known:
            return self.screen.side(tab)
        tab = self._begun(call, tab)
        self.jobs.use(tab.conversation_id, call.id(), on=bool(call.data.get("on")))
        return {"cid": tab.conversation_id, **self._lists(call, tab)}

    def _use_all(self, call: Call, tab: Tab) -> Updates:
        tab = self._begun(call, tab)
        self.jobs.use_all(tab.conversation_id)
        return {"cid": tab.conversation_id, **self._lists(call, tab)}

    def _lists(self, call: Call, tab: Tab) -> Updates:
        """The lists, and the greeting of an empty chat, which speaks of its documents."""
        conversation = self.screen.conversation(tab.conversation_id)
        if conversation and (conversation.turns or self.desk.running(conversation.id)):
            return self.screen.side(tab)
        return {**self.screen.side(tab), **self.screen.chat(tab, call.session, conversation)}

    def _remove(self, call: Call, tab: Tab) -> Updates:
        if call.id():
            self._services.library.delete(call.id())
            self._services.store.remove_document_everywhere(call.id())
        return self._lists(call, tab)

    def _dismiss(self, call: Call, tab: Tab) -> Updates:
        self.jobs.dismiss(tab.conversation_id, call.id())
        return self.screen.side(tab)

    # Checks

    def _begun(self, call: Call, tab: Tab) -> Tab:
        return self.desk.begin(
            call.session, tab, lambda: self._services.store.create_conversation().id
        )

    def _tab(self, call: Call) -> Tab:
        """What the tab shows; after a restart what its page says, if that exists."""
        claimed = call.conversation_id
        if claimed and not self.desk.knows(call.session) and self.screen.conversation(claimed):
            return self.desk.show(call.session, Tab(claimed))
        return self.desk.tab(call.session)
