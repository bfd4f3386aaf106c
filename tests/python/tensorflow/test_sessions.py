"""Sessions and estimators: graph tensors by name, pattern and kind."""

import numpy
import tensorflow as tf

import tornasole.tensorflow as smd

v1 = tf.compat.v1
EVERY_STEP = smd.SaveConfig(save_interval=1)


def simple(hook, steps=4, fetch_loss=True):
    """A linear model in a graph of its own; the weight at the end."""
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        given = v1.placeholder(tf.float32, (None, 2), name="given")
        other = v1.placeholder(tf.float32, (), name="other")
        tf.multiply(other, 2.0, name="unfed")
        with v1.name_scope("model"):
            weight = v1.Variable([[10.0], [10.0]], name="weight")
            bias = v1.Variable([0.5], name="bias")
        answer = tf.add(tf.matmul(given, weight, name="product"), bias, name="answer")
        loss = v1.losses.mean_squared_error(tf.reduce_sum(given, 1, keepdims=True), answer)
        optimizer = v1.train.AdamOptimizer(0.1)
        if hook is not None:
            assert hook.wrap_optimizer(optimizer) is optimizer
        train = optimizer.minimize(loss)
        final = weight.read_value()
        numbers = numpy.random.RandomState(0)
        with v1.train.MonitoredSession(hooks=[] if hook is None else [hook]) as session:
            for _ in range(steps):
                session.run([loss, train] if fetch_loss else train, {given: numbers.rand(5, 2)})
            return session.run(final).tobytes()


def test_kinds_and_patterns(tmp_path, saved):
    schedule = smd.SaveConfig(save_interval=2)
    inside = ["weights", "biases", "gradients", "optimizer_variables"]
    options = {"include_collections": inside, "include_regex": ["product"]}
    hook = smd.SessionHook(tmp_path / "run", save_config=schedule, **options)
    assert simple(hook) == simple(None)
    hook.close()
    steps = saved()
    assert sorted(steps) == [0, 2, 4]
    assert {"model/weight:0", "model/bias:0", "mean_squared_error/value:0", "product:0"} <= steps[0]
    assert any("Adam" in name for name in steps[0])
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.tensor_names(collection="weights") == ["model/weight:0"]
    assert trial.tensor_names(collection="biases") == ["model/bias:0"]
    assert trial.tensor_names(collection="losses") == ["mean_squared_error/value:0"]
    assert len(trial.tensor_names(collection="gradients")) == 2
    assert hook.report()["errors"] == []


def test_collections_can_be_read_before_anything_is_due(tmp_path):
    hook = smd.SessionHook(tmp_path / "run", include_collections=["weights"])
    for name in hook.include_collections:
        hook.get_collection(name).save_config = smd.SaveConfig(end_step=0)
    simple(hook)
    trial = smd.create_trial(str(tmp_path / "run"))  # waits for the collections: the run is still open
    assert "weights" in trial.collections() and trial.steps() == [] and trial.tensor_names() == []
    hook.close()


def test_the_first_saved_step_completes_the_collections(tmp_path):
    hook = smd.SessionHook(tmp_path / "run", include_collections=["weights"])
    simple(hook)
    assert smd.create_trial(str(tmp_path / "run")).collection("weights").tensor_names == {"model/weight:0"}
    hook.close()


def test_everything_that_runs_and_nothing_else(tmp_path, saved):
    hook = smd.SessionHook(tmp_path / "run", save_all=True)
    assert simple(hook) == simple(None), "no operation ran that would not have run"
    hook.close()
    names = saved()[0]
    assert {"answer:0", "model/weight:0", "given:0"} <= names and "unfed:0" not in names


def test_modes_and_what_is_added(tmp_path, saved):
    hook = smd.EstimatorHook(tmp_path / "run", include_collections=["mine"])
    with tf.Graph().as_default():
        doubled = tf.multiply(tf.constant([1.0, 2.0]), 2.0, name="doubled")
        counter = v1.Variable(7, name="counter", trainable=False)
        hook.get_collection("mine").add([doubled, counter])
        hook.set_mode(smd.modes.EVAL)
        with v1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(doubled)
    hook.close()
    assert saved() == {0: {"doubled:0", "counter:0"}}
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.EVAL) == [0] and trial.tensor("counter:0").value(0) == 7


def test_what_is_fed_and_what_the_program_gave(tmp_path, saved):
    hook = smd.SessionHook(tmp_path / "run", include_collections=["inputs", "losses", "mine"], save_config=EVERY_STEP)
    with tf.Graph().as_default():
        given = v1.placeholder(tf.float32, (None, 2), name="given")
        absent = v1.placeholder(tf.float32, (None, 1), name="absent")
        weight = v1.get_variable("weight", (2, 1))
        answer = tf.matmul(given, weight, name="answer")
        # A mean: its gradients do not need it.
        loss = tf.reduce_mean((answer - tf.reduce_sum(given, 1, keepdims=True)) ** 2, name="loss")
        likely = tf.nn.sigmoid(answer, name="likely")
        drawn = tf.random.uniform((2,), name="drawn")
        hook.add_to_collection("inputs", [given, absent])
        hook.add_to_collection("losses", loss)
        hook.get_collection("mine").add([likely, drawn, answer + absent])
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        fed = numpy.float32([[1, 2], [3, 4]])
        with v1.train.MonitoredSession(hooks=[hook]) as session:
            session.run(train, {given: fed})
            session.run(train, {given: fed.tolist(), answer: [[0.0], [0.0]]})
    hook.close()
    assert saved() == {0: {"given:0", "loss:0", "likely:0"}, 1: {"given:0", "loss:0", "likely:0"}}
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.tensor_names(collection="losses") == ["loss:0"]
    assert trial.tensor_names(collection="inputs") == ["given:0"]
    assert (trial.tensor("given:0").value(0) == fed).all() and (trial.tensor("given:0").value(1) == fed).all()
    assert (trial.tensor("likely:0").value(1) == 0.5).all(), "of the answer that was fed"
    assert hook.report()["errors"] == []


def test_the_older_name(tmp_path, saved):
    hook = smd.TornasoleHook(str(tmp_path / "run"))
    simple(hook, steps=2)
    hook.close()
    assert {"model/weight:0", "model/bias:0"} <= saved()[0] and sorted(saved()) == [0]


def train_evaluate_and_predict_by_an_estimator(tmp_path):
    hook = smd.EstimatorHook(
        tmp_path / "run", save_config=smd.SaveConfig(save_interval=2), include_collections=["weights", "gradients"]
    )

    def model_fn(features, labels, mode):
        scores = v1.layers.dense(features["x"], 2, name="scores")
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"scores": scores})
        loss = v1.losses.sparse_softmax_cross_entropy(labels, scores)
        train = None
        if mode == tf.estimator.ModeKeys.TRAIN:
            optimizer = hook.wrap_optimizer(v1.train.GradientDescentOptimizer(0.1))
            train = optimizer.minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def data():
        values = numpy.random.RandomState(0).randn(16, 4).astype("float32")
        return tf.data.Dataset.from_tensor_slices(({"x": values}, numpy.zeros(16, "int32"))).batch(4).repeat()

    estimator = tf.estimator.Estimator(model_fn, model_dir=str(tmp_path / "model"))
    hook.set_mode(smd.modes.TRAIN)
    estimator.train(data, steps=3, hooks=[hook])
    hook.set_mode(smd.modes.EVAL)
    estimator.evaluate(data, steps=2, hooks=[hook])
    hook.set_mode(smd.modes.PREDICT)
    next(estimator.predict(data, hooks=[hook]))
    hook.close()
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2] and trial.steps(mode=smd.modes.EVAL) == [0]
    assert trial.tensor_names(collection="weights") == ["scores/kernel:0"]
    assert len(trial.tensor_names(collection="gradients")) == 2 and len(trial.tensor_names(collection="losses")) == 1


if hasattr(tf, "estimator"):  # until TensorFlow 2.15
    test_an_estimator = train_evaluate_and_predict_by_an_estimator


def test_what_a_tensor_without_a_fed_placeholder_can_tell():
    from tornasole.tensorflow.utils import tensor_can_be_saved

    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, (), name="fed")
        unfed = v1.placeholder(tf.float32, (), name="unfed")
        both = tf.multiply(fed, unfed, name="both")
        above = tf.negative(both, name="above")
        constant = tf.constant(1.0, name="constant")
    cases = [
        ("a constant needs nothing", constant, set(), True),
        ("a placeholder that is not fed has no value", unfed, set(), False),
        ("nor has what needs it, however far up", above, {"fed"}, False),
        ("what runs in any case has a value", above, {"both"}, True),
        ("so has what is made from that alone", both, {"fed", "unfed"}, True),
    ]
    for told, tensor, running, expected in cases:
        assert tensor_can_be_saved(tensor, running, {unfed.ref(): unfed}.values()) is expected, told
