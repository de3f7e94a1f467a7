"""Documents to passages: load, clean, chunk, embed, index, search. Knows nothing of the chatbot."""
