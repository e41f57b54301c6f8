"""Coffee: how long espresso machines take for a cup, by dose, grind and pressure. The numbers are made up."""

from perfcast.domain import Domain

DOMAIN = Domain(
    name="coffee",
    package=__name__,
    descriptions={"coffee_brews": "brew_rules.COFFEE_BREWS"},
    flags={
        "espresso (coffee_brews)": {
            ("dose",): "ground coffee of a cup: 18",
            ("grind",): "mean size of its grains: 300",
        }
    },
)
