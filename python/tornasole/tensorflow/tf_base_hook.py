"""What the hooks for TensorFlow share: how a value goes to the collection it belongs to by its kind."""

from typing import Any, Dict, List, Optional, Set, Tuple

import tensorflow as tf

from tornasole import _engine
from tornasole.core.collection import CollectionKeys
from tornasole.core.guard import guard
from tornasole.core.hook import BaseHook
from tornasole.tensorflow.tf_collection import Collection
from tornasole.tensorflow.tf_values import as_array, is_symbolic
from tornasole.tensorflow.tf_workers import rank_and_size

LOSS_KEYS = ("loss", "val_loss")


class TensorflowBaseHook(BaseHook):
    """A hook with the collections of TensorFlow."""

    _framework = "tensorflow"
    _framework_version = tf.__version__
    _collection_class = Collection

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self._uncaptured: List[str] = []
        self._told: Set[str] = set()
        self._due: Set[str] = set()  # collections, in the open step
        self._due_set = 0  # the engine's number of them
        # Its pattern tells which variables are biases; other tensors with such names are none.
        self.get_collection(CollectionKeys.BIASES).exclude(".*")

    def _get_worker_rank(self) -> Tuple[int, int]:
        return rank_and_size()

    def _get_worker_name(self) -> str:
        return self.worker

    def _get_num_workers(self) -> int:
        return rank_and_size()[1]

    def report(self) -> Dict[str, Any]:
        """What capture did so far; ``uncaptured`` names the tensors that are wanted and cannot be had."""
        return {**super().report(), "uncaptured": list(self._uncaptured)}

    def _cannot_capture(self, name: str, why: str) -> None:
        if name not in self._uncaptured:
            self._uncaptured.append(name)
        if why not in self._told:
            self._told.add(why)
            self.logger.warning("'%s' cannot be captured: %s (report() names all such tensors)", name, why)

    # ---- one value

    def _find_due(self) -> None:
        """Looks up which collections are due in the open step."""
        due_set = self._engine_hook.due_set()
        if due_set != self._due_set or due_set == 0:
            self._due_set, self._due = due_set, set(self._engine_hook.due_collections())

    def _is_wanted(self, name: str, collection: str, asked: Optional[str] = None) -> bool:
        """Whether a tensor that belongs to the collection by its kind is to be saved in the open step."""
        engine = self._engine_hook
        if collection in (CollectionKeys.WEIGHTS, CollectionKeys.BIASES) and collection in self._due:
            return True
        return engine.should_save(asked or name, collection) or engine.wants(name)

    def _save_as(self, name: str, value: Any, *collections: str) -> None:
        """Saves a value in the open step, as one of the collections if these are due, else if another takes it in."""
        try:
            array = as_array(value)
            if array is None:
                return
            if collections[0] in self._due:
                self._engine_hook.save_tensor(name, array, list(collections))
                for collection in collections:
                    self._note_member(name, collection)
            else:
                self._engine_hook.save(name, array)
        except Exception as error:
            guard.handle(error, f"'{name}'")

    def _note_member(self, name: str, collection_name: str) -> None:
        """The engine knows that the tensor belongs there; what is shown of the collection says so too."""
        collection = self.collection_manager.collections.get(collection_name)
        if collection is not None and name not in collection._tensor_names:
            is_pushed = self._pushed.get(collection_name) == collection._plain()
            collection._tensor_names.add(name)
            if is_pushed:
                self._pushed[collection_name] = collection._plain()

    def _weight_collection(self, variable: str) -> str:
        """``biases`` for a variable whose name one of that collection's patterns matches, else ``weights``."""
        patterns = self.get_collection(CollectionKeys.BIASES)._include_regex
        is_bias = any(_engine.finds_match(pattern, variable) for pattern in patterns)
        return CollectionKeys.BIASES if is_bias else CollectionKeys.WEIGHTS

    def _as_array(self, name: str, value: Any) -> Any:
        if is_symbolic(value):
            self.logger.warning("save_tensor: %r has no value inside a function of TensorFlow; it is left out", name)
            return None
        is_value = tf.is_tensor(value) or isinstance(value, (tf.Variable, tf.distribute.DistributedValues))
        if is_value or hasattr(value, "path"):
            value = as_array(value)
        return super()._as_array(name, value)

    def should_save_layer(self, layer_name: str) -> bool:
        """Whether the tensors of a layer would be saved in this step."""
        return self.should_save_tensor_or_collection(layer_name, CollectionKeys.LAYERS)

    def should_save_tensor(self, tensor_name: str, collection_name: str) -> bool:
        """The older name of :meth:`should_save_tensor_or_collection`."""
        return self.should_save_tensor_or_collection(tensor_name, collection_name)
