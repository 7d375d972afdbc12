package compose

import (
	"github.com/loom-bridge/loom-bridge/bridge/secret"
)

// knowSecrets adds the secrets of the operator's profiles to the masks: the values that
// requests carry, and variables of programs. An unreadable one is reported when it is used.
func knowSecrets(o Options) {
	for _, name := range o.Policies.Names() {
		profile, _ := o.Policies.Profile(name)
		variables := map[string]string{}
		for name, value := range profile.Environment {
			if secret.Likely(name, value) {
				variables[name] = value
			}
		}
		o.Secrets.Put("", "profile "+name, variables)
		for _, host := range profile.Hosts {
			if host.Secret == nil || o.Egress.Secret == nil {
				continue
			}
			if value, err := o.Egress.Secret(host.Secret.From); err == nil {
				o.Egress.Know(host.Secret.Env, host.Secret.From, value)
			}
		}
	}
}
