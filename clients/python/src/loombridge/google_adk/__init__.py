"""Sessions, memory and artifacts of Google's Agent Development Kit.

    from loombridge import google_adk

    runner = Runner(
        agent=agent,
        app_name="app",
        session_service=google_adk.LoomBridgeSessionService("127.0.0.1:50051"),
        memory_service=google_adk.LoomBridgeMemoryService("127.0.0.1:50051"),
        artifact_service=google_adk.LoomBridgeArtifactService("127.0.0.1:50051"),
    )

Install it with `pip install "loombridge[google-adk]"`.
"""

try:
    from loombridge.google_adk._artifacts import LoomBridgeArtifactService
    from loombridge.google_adk._services import LoomBridgeMemoryService, LoomBridgeSessionService
except ModuleNotFoundError as err:
    if not (err.name or "").startswith(("google", "pydantic")):
        raise
    raise ImportError(
        'loombridge.google_adk needs Google ADK: pip install "loombridge[google-adk]"'
    ) from err

__all__ = ["LoomBridgeArtifactService", "LoomBridgeMemoryService", "LoomBridgeSessionService"]
