// Package conduct says of each method what it does and costs, so that nothing else in the
// server keeps a table of methods.
//
// For loombridge.v1 that stands in the protos, as the option of options.proto that every
// method has. The protos of loom.v1 are frozen, and that of A2A is others', so their methods
// have tables here.
package conduct

import (
	"maps"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// native is the package of the native API.
const native protoreflect.FullName = "loombridge.v1"

// given has the methods of A2A. What they refuse reads.
var given = map[string]*loombridgev1.Conduct{
	a2av1.A2AService_SendMessage_FullMethodName:          {Effect: loombridgev1.Effect_EFFECT_STORES},
	a2av1.A2AService_SendStreamingMessage_FullMethodName: {Effect: loombridgev1.Effect_EFFECT_STORES},
	a2av1.A2AService_CancelTask_FullMethodName:           {Effect: loombridgev1.Effect_EFFECT_FREES},
	a2av1.A2AService_ListTasks_FullMethodName:            {Effect: loombridgev1.Effect_EFFECT_READS, Searches: true},
}

// loom has the methods of loom.v1 that do more than read.
var loom = map[string]loombridgev1.Effect{
	loomv1pb.AgentRuntime_CreateAgent_FullMethodName:      loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.AgentRuntime_DeleteAgent_FullMethodName:      loombridgev1.Effect_EFFECT_FREES,
	loomv1pb.AgentRuntime_UpdateAgentState_FullMethodName: loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.AgentRuntime_SendEvent_FullMethodName:        loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.Bridge_RegisterAgent_FullMethodName:          loombridgev1.Effect_EFFECT_FREES,
	loomv1pb.Bridge_EventStream_FullMethodName:            loombridgev1.Effect_EFFECT_FREES,
	loomv1pb.Bridge_ForwardToolCall_FullMethodName:        loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.Bridge_Heartbeat_FullMethodName:              loombridgev1.Effect_EFFECT_FREES,
	loomv1pb.EventBus_Publish_FullMethodName:              loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.EventBus_Unsubscribe_FullMethodName:          loombridgev1.Effect_EFFECT_FREES,
	loomv1pb.MemoryService_SavePlan_FullMethodName:        loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.MemoryService_MarkExecuted_FullMethodName:    loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.MemoryService_AppendEvent_FullMethodName:     loombridgev1.Effect_EFFECT_STORES,
	loomv1pb.ToolService_Call_FullMethodName:              loombridgev1.Effect_EFFECT_STORES,
}

// all are the methods by their full names, with a slash in front.
var all = sync.OnceValue(func() map[string]*loombridgev1.Conduct {
	found := make(map[string]*loombridgev1.Conduct)
	protoregistry.GlobalFiles.RangeFilesByPackage(native, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				if c, ok := proto.GetExtension(m.Options(), loombridgev1.E_Conduct).(*loombridgev1.Conduct); ok {
					found["/"+string(service.FullName())+"/"+string(m.Name())] = c
				}
			}
		}
		return true
	})
	for method, effect := range loom {
		found[method] = &loombridgev1.Conduct{Effect: effect}
	}
	maps.Copy(found, given)
	return found
})

// Of is the conduct of a method, by its full name with a slash in front; that of one that
// does nothing, for what is in none of the APIs. It is not to be changed.
func Of(method string) *loombridgev1.Conduct { return all()[method] }

// Changes reports whether a call of a method does anything but read.
func Changes(method string) bool {
	effect := Of(method).GetEffect()
	return effect == loombridgev1.Effect_EFFECT_STORES || effect == loombridgev1.Effect_EFFECT_FREES
}

// Searches reports whether the work of a call grows with the data stored or sent.
func Searches(method string) bool { return Of(method).GetSearches() }

// Stores reports whether a call may make the store grow.
func Stores(method string) bool {
	return Of(method).GetEffect() == loombridgev1.Effect_EFFECT_STORES
}

// Acts reports whether by a method of the native API agents do something that they may not do
// any more when they have ended.
func Acts(method string) bool {
	return loom[method] == loombridgev1.Effect_EFFECT_UNSPECIFIED && Changes(method) && !Of(method).GetAfterEnd()
}
