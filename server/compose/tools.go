package compose

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/native/web"
	"github.com/loom-bridge/loom-bridge/bridge/tools/search"
)

// openTools puts the server's own tools into the registry.
func (d *Domain) openTools(o Options) error {
	if err := native.Register(d.Registry, &native.Options{Store: o.StoreDir, Blobs: d.reader(true), Memory: d.Tiers, Shell: o.Shell}); err != nil {
		return err
	}
	if o.Web != nil {
		o.Web.Gate = d.Egress
		if err := web.Register(d.Registry, *o.Web); err != nil {
			return err
		}
	}
	if err := search.Register(d.Registry, search.NewFinder(d.Tools)); err != nil {
		return err
	}
	if err := d.Registry.CheckLevels(); err != nil {
		return fmt.Errorf("the level of a tool: %w", err)
	}
	return nil
}
