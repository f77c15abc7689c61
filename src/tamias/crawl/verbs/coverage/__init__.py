"""How much of a list of URLs a crawl has reached, by depth: `listing` reads the list, `measure` compares."""
