"""Numbered changes of the tables, each applied once and recorded by Alembic."""
