"""The Spark side of Stairwise: it runs the optimizer's plans, and knows no Airflow."""
