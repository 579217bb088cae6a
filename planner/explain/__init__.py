"""Plans for people: text, JSON, YAML and diagrams of every phase."""
