"""The blow-up time between two proved bounds: integration in balls, then a bound to the end."""
