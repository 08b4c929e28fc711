"""The data of a capacity planning problem: VM types, jobs with due dates, plans and their cost."""
