"""Exchange formats as arrays and rows, and back; nothing here knows a GPU or a job."""
