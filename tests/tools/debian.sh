# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh
# Functions for scripts that make roots of Debian.

# Where this machine's apt gets its own release from.
mirror() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
		sed -n "s/^$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) //p" | head -n 1
}
