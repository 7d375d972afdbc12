package convert

import (
	"github.com/loom-bridge/loom-bridge/memory/grants"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Space is a space as an agent sees it.
func Space(s grants.Space) *loombridgev1.Space {
	return &loombridgev1.Space{SpaceId: s.Name, Access: loombridgev1.Access(s.Level), CreateTime: Timestamp(s.Time)}
}

// Grant is access that was given.
func Grant(g grants.Grant) *loombridgev1.Grant {
	return &loombridgev1.Grant{Grantee: g.Pattern, Access: loombridgev1.Access(g.Level), GrantedBy: g.By, GrantTime: Timestamp(g.Time)}
}
