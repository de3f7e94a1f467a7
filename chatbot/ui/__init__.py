"""The page: Gradio Blocks over `Chat`. Events to widgets, no decisions."""
