"""The commands of the command line, one file each: `add_arguments(parser)` and `run(...)`.

`run(arguments, settings, console)` returns the exit code; errors are raised.
"""

COMMANDS = {
    "serve": "open the chat in the browser",
    "chat": "chat in the terminal",
    "ask": "answer one question from documents",
    "ingest": "read documents into the library",
    "library": "move the library of documents to Milvus or back",
    "import": "read chats from JSON files, ChatGPT's export among them",
    "export": "write a chat as JSON or Markdown",
    "context": "show the prompt that a question would have, without calling a model",
    "plan": "show what fits into memory before a model is loaded",
    "capacity": "reckon what a team of some size needs: GPUs, replicas, storage",
    "regress": "run suites of conversations, and say what a change broke",
    "bench": "measure the program on this machine; the last line is JSON",
    "user": "say who may open the page in a network (see --host and --auth)",
    "key": "make, list and revoke keys of the API (see serve --api)",
    "fetch": "fetch the embedded models",
}
"""Name of each command and what it does; `serve` is run when none is named."""
