"""Where claims come from: one module for each way of finding them; none is trusted."""
