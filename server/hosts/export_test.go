package hosts

// Events are the hooks that are installed for a host.
func Events(host string) []string { return events[host] }
