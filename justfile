# Recipes for working on zae-limits. `just` lists them.

default:
    @just --list

# Format, lint and test, as CI does.
ci:
    .ci/run

# Format the code.
fmt:
    cargo fmt

# Lint with warnings denied.
lint:
    cargo clippy --all-targets -- -D warnings

# Run every test, or those whose names match.
test *filter:
    cargo test {{filter}}

# Measure, with the Python peer beside where python3 has it.
bench:
    cargo bench

# Apply the example manifests to the embedded store.
local-apply:
    cargo run -- --local apply -f manifests/ --yes

# Fill the embedded store with sample entities and buckets.
local-seed:
    cargo run -- --local local seed

# Check licences, duplicates and sources of dependencies.
deny:
    cargo deny check
