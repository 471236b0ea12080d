module quaminapeer

go 1.22

require quamina.net/go/quamina v1.5.1

// The same release under its repository's address: not every module proxy serves the vanity address.
replace quamina.net/go/quamina => github.com/timbray/quamina v1.5.1
