"""Plans and designs as layers of torch: residual softmax attention with ordinary weights."""
