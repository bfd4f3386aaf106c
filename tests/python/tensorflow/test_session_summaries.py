"""What TensorBoard gets of a session: the program's graph, and its own summaries."""

import tensorflow as tf

import tornasole.tensorflow as smd

v1 = tf.compat.v1


def run_with_summaries(hook, steps=3):
    with tf.Graph().as_default():
        given = v1.placeholder(tf.float32, (), name="given")
        loss = tf.multiply(given, 2.0, name="doubled")
        v1.losses.add_loss(loss)
        v1.summary.scalar("own_curve", loss)
        merged = v1.summary.merge_all()
        with v1.train.MonitoredSession(hooks=[hook]) as session:
            return [session.run([loss, merged], {given: float(step)})[0] for step in range(steps)]


def events_below(directory):
    for path in sorted(directory.rglob("*.tfevents")):
        yield from v1.train.summary_iterator(str(path))


def test_graph_and_summaries_are_passed_on(tmp_path):
    hook = smd.SessionHook(tmp_path / "run", export_tensorboard=True, save_config=smd.SaveConfig(save_interval=1),
                           include_collections=["losses", "tensorflow_summaries"])
    assert run_with_summaries(hook) == [0.0, 2.0, 4.0]
    hook.close()
    events = list(events_below(tmp_path / "run" / "tensorboard"))
    curve = {(e.step, v.simple_value) for e in events for v in e.summary.value if v.tag == "own_curve"}
    assert curve == {(0, 0.0), (1, 2.0), (2, 4.0)}
    losses = {(e.step, v.simple_value) for e in events for v in e.summary.value if v.tag == "doubled_0"}
    assert losses == curve
    (graph,) = [e.graph_def for e in events if e.graph_def]
    names = {node.name for node in v1.GraphDef.FromString(graph).node}
    assert {"given", "doubled"} <= names
    trial = smd.create_trial(str(tmp_path / "run"))
    assert "own_curve:0" not in trial.tensor_names(), "summaries are for TensorBoard alone"
    assert hook.report()["errors"] == []


def test_without_tensorboard_nothing_is_fetched_for_it(tmp_path):
    hook = smd.SessionHook(tmp_path / "run", save_config=smd.SaveConfig(save_interval=1),
                           include_collections=["losses", "tensorflow_summaries"])
    run_with_summaries(hook)
    hook.close()
    assert not (tmp_path / "run" / "tensorboard").exists()
    assert smd.create_trial(str(tmp_path / "run")).tensor_names() == ["doubled:0"]
