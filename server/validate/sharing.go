package validate

import (
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// space is a request about a space.
type space interface {
	GetAgentId() string
	GetSpaceId() string
}

func checkSpace(r space) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("space_id", r.GetSpaceId(), kv.MaxOwnerBytes)
	return c.err()
}

// CreateSpaceRequest checks what SharingService.CreateSpace is asked.
func CreateSpaceRequest(r *loombridgev1.CreateSpaceRequest) error { return checkSpace(r) }

// DeleteSpaceRequest checks what SharingService.DeleteSpace is asked.
func DeleteSpaceRequest(r *loombridgev1.DeleteSpaceRequest) error { return checkSpace(r) }

// ListSpacesRequest checks what SharingService.ListSpaces is asked.
func ListSpacesRequest(r *loombridgev1.ListSpacesRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.namesPage(r, page.Spaces, kv.MaxOwnerBytes)
	return c.err()
}

// granting checks whose memory a request is about.
func (c *checker) granting(r owned) {
	c.owner(r)
	if r.GetUserId() == "" && r.GetSpaceId() == "" {
		c.add("owner", "is required: space_id or user_id")
	}
}

// GrantAccessRequest checks what SharingService.GrantAccess is asked.
func GrantAccessRequest(r *loombridgev1.GrantAccessRequest) error {
	var c checker
	c.granting(r)
	c.requiredName("grantee", r.GetGrantee(), grants.MaxPatternBytes)
	c.enum("access", r.GetAccess())
	if r.GetAccess() == loombridgev1.Access_ACCESS_UNSPECIFIED {
		c.add("access", "is required")
	}
	return c.err()
}

// RevokeAccessRequest checks what SharingService.RevokeAccess is asked.
func RevokeAccessRequest(r *loombridgev1.RevokeAccessRequest) error {
	var c checker
	c.granting(r)
	c.requiredName("grantee", r.GetGrantee(), grants.MaxPatternBytes)
	return c.err()
}

// ListGrantsRequest checks what SharingService.ListGrants is asked.
func ListGrantsRequest(r *loombridgev1.ListGrantsRequest) error {
	var c checker
	c.granting(r)
	c.namesPage(r, page.Grants, grants.MaxPatternBytes)
	return c.err()
}
