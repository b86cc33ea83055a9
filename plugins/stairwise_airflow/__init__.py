"""The Airflow side of Stairwise: it knows the optimizer, and Spark by name only.

Importing this package imports no Airflow: every ``import airflow`` reads :mod:`stairwise_airflow.provider`, and has not
finished then.
"""
