"""Show plans and stage graphs to people: text, YAML, Mermaid and DOT."""
