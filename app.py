"""Opens the chat in the browser; `python app.py --help` explains every setting."""

from chatbot.start import start

if __name__ == "__main__":
    start()
