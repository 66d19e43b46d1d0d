"""Steering: constructive controllers, optimal control, and what checks a plan."""
