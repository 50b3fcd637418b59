"""The only steps that read private records. Each is charged before it runs."""
