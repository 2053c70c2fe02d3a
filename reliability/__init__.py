"""Programs that try to break untwist, and count; docs/reliability.md is made of what they find."""
