# Called by `sam build`, which names the target after the function in template.yaml. SAM's own builder for Rust would
# neither leave the embedded store out nor put the manifests in.
#
# ARCHITECTURE must be the template's parameter: arm64, x86_64, or `host` for trying things out on this machine.

ARTIFACTS_DIR ?= target/sam
ARCHITECTURE ?= arm64

ifeq ($(ARCHITECTURE),host)
target =
else ifeq ($(ARCHITECTURE),x86_64)
target = --x86-64
else ifeq ($(ARCHITECTURE),arm64)
target = --arm64
else
$(error ARCHITECTURE is $(ARCHITECTURE): use arm64, x86_64 or host)
endif

.PHONY: build-Provisioner
build-Provisioner:
	mkdir -p "$(ARTIFACTS_DIR)"
	cargo lambda build --release --locked $(target) --no-default-features --features lambda --bin limits-provisioner \
	    --flatten limits-provisioner --lambda-dir "$(ARTIFACTS_DIR)"
	cp -R manifests "$(ARTIFACTS_DIR)/"
