"""What the suite simulated-trips claims."""

from ldptree_benchmark.results.claims import Claims

claims = Claims()
COMPANIES = {
    "flash-cab": "Flash Cab",
    "affiliation": "Taxi Affiliation Services",
    "sun": "Sun Taxi",
    "city": "City Service",
    "insurance": "Taxicab Insurance Agency, LLC",
    "blue-ribbon": "Blue Ribbon Taxi Association Inc.",
}

for name, company in COMPANIES.items():
    words = "simulated trips are no easier than real ones, and harder by .04 at most (a tree of private rows)"

    @claims(2, says=f"{company}: {words}")
    def _(s, name=name):
        harder = s.score(f"simulated-{name}", "non-private") - s.score(f"real-{name}", "non-private")
        assert -0.04 <= s.show(harder, "+") <= 0.0
