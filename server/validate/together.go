package validate

import (
	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// owned is a request about a memory.
type owned interface {
	GetAgentId() string
	GetUserId() string
	GetSpaceId() string
}

// together checks what the fields of a request say together.
func (c *checker) together(r proto.Message) {
	if o, ok := r.(owned); ok && o.GetUserId() != "" && o.GetSpaceId() != "" {
		c.add("space_id", "can't be given with user_id: a memory is that of one of the two")
	}
	switch r := r.(type) {
	// Those that are called most, then the others by service.
	case *loombridgev1.MemorySaveRequest:
		c.save(r)
	case *loombridgev1.MemoryQueryRequest:
		c.query(r)
	case *loombridgev1.ToolRequest:
		c.tool(r)
	case *loombridgev1.EmitRequest:
		c.emit(r)
	case *loombridgev1.RecordStepRequest:
		c.recorded(r)
		if r.GetOutputUpload() != nil {
			c.add("output_upload", "belongs to UploadStep")
		}
	default:
		c.ofMemory(r)
		c.ofContext(r)
		c.ofAgents(r)
	}
}
