"""`python -m chatbot`."""

from chatbot.start import start

start()
