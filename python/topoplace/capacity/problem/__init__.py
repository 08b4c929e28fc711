"""The tables of a capacity problem: VM types, jobs with due dates, plans and their cost."""
