// Streams, graphs and events: nothing is done before somebody asks whether it is.
#include "tests/runtime/devices/cuda/stand_in_state.h"

namespace stand_in {

EXPORTED int cuStreamCreate(Stream** stream, unsigned flags) {
  const int result = enter_context("cuStreamCreate", "flags=" + std::to_string(flags));
  if (result != kOk) return result;
  *stream = *state().streams.insert(new Stream).first;
  return kOk;
}

EXPORTED int cuStreamDestroy_v2(Stream* stream) {
  enter("cuStreamDestroy_v2");
  if (state().streams.erase(stream) == 0) return reject("cuStreamDestroy_v2", "no such stream");
  delete stream;
  return kOk;
}

EXPORTED int cuStreamQuery(Stream* stream) {
  const int result = enter_context("cuStreamQuery");
  if (result != kOk) return result;
  if (!state().streams.contains(stream)) return reject("cuStreamQuery", "no such stream");
  if (stream->capturing) return reject("cuStreamQuery", "the stream is capturing", 900);
  drain(stream);
  return kOk;
}

EXPORTED int cuStreamBeginCapture_v2(Stream* stream, int mode) {
  const int result = enter_context("cuStreamBeginCapture_v2", "mode=" + std::to_string(mode));
  if (result != kOk) return result;
  if (stream->capturing) return reject("cuStreamBeginCapture_v2", "the stream is capturing");
  stream->capturing = true;
  return kOk;
}

EXPORTED int cuStreamEndCapture(Stream* stream, Graph** graph) {
  const int result = enter_context("cuStreamEndCapture");
  if (!stream->capturing) return reject("cuStreamEndCapture", "the stream is not capturing");
  stream->capturing = false;
  if (result != kOk) return result;
  *graph = new Graph{std::move(stream->captured)};
  stream->captured.clear();
  state().graphs.insert(*graph);
  return kOk;
}

EXPORTED int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long flags) {
  const int result = enter_context("cuGraphInstantiateWithFlags");
  if (result != kOk) return result;
  if (!state().graphs.contains(graph) || flags != 0) {
    return reject("cuGraphInstantiateWithFlags", "no such graph");
  }
  *exec = new Graph(*graph);
  state().execs.insert(*exec);
  return kOk;
}

EXPORTED int cuGraphLaunch(Graph* exec, Stream* stream) {
  const int result = enter_context("cuGraphLaunch");
  if (result != kOk) return result;
  if (!state().execs.contains(exec)) return reject("cuGraphLaunch", "no such graph");
  for (const Work& work : exec->work) {
    if (const int queued = enqueue("cuGraphLaunch", stream, work); queued != kOk) return queued;
  }
  return kOk;
}

EXPORTED int cuGraphExecDestroy(Graph* exec) {
  enter("cuGraphExecDestroy");
  if (state().execs.erase(exec) == 0) return reject("cuGraphExecDestroy", "no such graph");
  delete exec;
  return kOk;
}

EXPORTED int cuGraphDestroy(Graph* graph) {
  enter("cuGraphDestroy");
  if (state().graphs.erase(graph) == 0) return reject("cuGraphDestroy", "no such graph");
  delete graph;
  return kOk;
}

EXPORTED int cuEventCreate(EventState** event, unsigned flags) {
  const int result = enter_context("cuEventCreate");
  if (result != kOk) return result;
  if (flags != 0) return reject("cuEventCreate", "an event without time");
  *event = *state().events.insert(new EventState).first;
  return kOk;
}

EXPORTED int cuEventDestroy_v2(EventState* event) {
  enter("cuEventDestroy_v2");
  if (state().events.erase(event) == 0) return reject("cuEventDestroy_v2", "no such event");
  delete event;
  return kOk;
}

EXPORTED int cuEventRecord(EventState* event, Stream* stream) {
  const int result = enter_context("cuEventRecord");
  if (result != kOk) return result;
  if (!state().events.contains(event)) return reject("cuEventRecord", "no such event");
  event->recorded = true;
  event->passed = false;
  return enqueue("cuEventRecord", stream, [=] {
    event->passed = true;
    event->at = state().clock;
  });
}

EXPORTED int cuEventElapsedTime(float* milliseconds, EventState* first, EventState* second) {
  const int result = enter_context("cuEventElapsedTime");
  if (result != kOk) return result;
  if (!first->passed || !second->passed) return reject("cuEventElapsedTime", "not passed", 600);
  *milliseconds = static_cast<float>(second->at - first->at);
  return kOk;
}

}  // namespace stand_in
