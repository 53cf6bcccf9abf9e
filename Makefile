# Called by `sam build`, which names the target after the function in template.yaml.

ARTIFACTS_DIR ?= target/sam

.PHONY: build-Provisioner
build-Provisioner:
	cargo lambda build --release --no-default-features --features lambda --bin limits-provisioner
	mkdir -p $(ARTIFACTS_DIR)
	cp target/lambda/limits-provisioner/bootstrap $(ARTIFACTS_DIR)/
	cp -R manifests $(ARTIFACTS_DIR)/
