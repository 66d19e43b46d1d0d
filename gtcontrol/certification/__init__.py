"""Certificates of stability and blow-up, equilibria, and design.

``run`` climbs the ``ladder`` of searches; ``rules`` prove what they find, ``conclusion`` says what
it means together, ``verification`` checks it again from a file, and ``evidence`` integrates where
nothing is proved.  Rooms: ``rules`` (proof), ``search`` and ``lmi`` (finding), ``bracket`` (blow-up
times by Taylor steps), ``equilibria``, ``design``, and ``theory``, the mathematics that they share.
"""
