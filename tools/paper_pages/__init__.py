"""The pages of the papers: what each reproduces (`NAME.toml`), the kept rows, and pages and pictures made of both."""
