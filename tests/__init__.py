"""Tests of gtcontrol."""
