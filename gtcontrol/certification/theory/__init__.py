"""Mathematics that rules, searches and programs share; nothing here proves or finds a claim.

``heads`` attention as few products, and ``components`` on which heads act apart; ``quadratic``
forms of y = tr(W S); ``pieces`` what a family needs; ``scaling`` units; ``comparison`` scalar
equations for y, and ``envelope`` their pictures; ``infinity`` the flow near a ray, made of the
``blocks`` of the parameters.
"""
