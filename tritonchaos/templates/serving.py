"""Model templates: find one, choose how it is served, build what it needs, and make its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tritonchaos import native
from tritonchaos.errors import TemplateError
from tritonchaos.plugins import BuildsFiles, CompilesLibraries
from tritonchaos.shipped import shipped_folder
from tritonchaos.templates.building import build_model_file, find_builder
from tritonchaos.templates.building_in_place import is_build_source
from tritonchaos.templates.formula import Formula, parse_formula
from tritonchaos.templates.machine import Machine, foreign_plan, stands_in, unmet
from tritonchaos.templates.template_file import (
    TemplateFile,
    TensorEntry,
    VariantEntry,
    is_rendered,
    nearest,
    parameters_without_effect,
    read_parameters,
    read_template_file,
    render,
    resolve,
)
from tritonchaos.templates.tensors import DATATYPES, Tensor, numpy_dtype, random_shape, random_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Machine", "ModelTemplate", "ServedModel", "Tensor", "find_template", "template_names"]

_FILE: Final = "template.yaml"
MODEL_VERSION: Final = "model_version"  # in expressions: the version that answers, shape [1]
_PACKAGE: Final = Path(__file__).resolve().parents[1]
# Triton finds a backend's entry points by name; everything else in the library stays ours.
_BACKEND_FLAGS: Final = ("-fvisibility=hidden", *native.WARNINGS)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model of a scenario, ready to be put into a model repository.

    Attributes:
        name: The model's name, which is also its directory's.
        variant: Which variant of the template is served; every report names it.
        files: Path below the model directory -> content, or the file to copy.
        backends: Backend name -> folder that holds our libtriton_<name>.so.
        inputs, outputs: As the configuration declares them, without the batch dimension.
        formulas: Output name -> its expected value.
        max_batch_size: 0: the tensors have no batch dimension.
    """

    name: str
    template: str
    variant: str
    needs_gpu: bool
    files: Mapping[str, bytes | Path]
    backends: Mapping[str, Path]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    formulas: Mapping[str, Formula] = field(default_factory=dict)
    max_batch_size: int = 0

    def make_inputs(
        self, random: Random, batch: int | None = None, shape: Sequence[int] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Make one request's input tensors, the same for the same random.

        Args:
            batch: Size of the batch dimension, also one that the model does not allow; None: one that it does.
            shape: Shape of every input without the batch dimension; None: dims, each -1 a small size.

        Returns:
            Name -> array of shape dims, or [batch, *dims] if the model batches or a batch was asked for.
        """
        front = (random.randint(1, self.max_batch_size),) if self.max_batch_size else ()
        front = front if batch is None else (batch,)
        return {
            tensor.name: random_values(
                tensor.datatype, (*front, *(random_shape(tensor.dims, random) if shape is None else shape)), random
            )
            for tensor in self.inputs
        }

    def expected(self, inputs: Mapping[str, NDArray[Any]], version: str = "") -> dict[str, NDArray[Any]]:
        """Compute what the model must answer, by output name.

        Outputs without an expression are left out, and without a version those whose expression needs it.

        Args:
            version: Version of the model that is to answer.
        """
        import numpy

        known = {**inputs, MODEL_VERSION: numpy.array([int(version)])} if version.isdecimal() else inputs
        return {
            tensor.name: self.formulas[tensor.name].evaluate(known).astype(numpy_dtype(tensor.datatype), copy=False)
            for tensor in self.outputs
            if tensor.name in self.formulas and self.formulas[tensor.name].names <= known.keys()
        }

    @property
    def answers_by_version(self) -> bool:
        """Say whether what it answers depends on the version that is asked."""
        return any(MODEL_VERSION in formula.names for formula in self.formulas.values())


@dataclass(frozen=True, slots=True)
class ModelTemplate:
    """A folder that looks like a model directory, with a template.yaml that says how it is served."""

    folder: Path
    read: TemplateFile

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.read.template

    @property
    def about(self) -> str:
        """What it is, in one sentence."""
        return self.read.about

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants, in order of preference."""
        return tuple(self.read.variants)

    def choose_variant(
        self, machine: Machine, forced: str | None = None, parameters: Mapping[str, Any] | None = None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Choose the first variant that can be served.

        Args:
            forced: The only variant that will do.
            parameters: Variants in which one of these has no effect are passed over.

        Returns:
            The variant, and (name, why) of those that were passed over.

        Raises:
            TemplateError: There is no such variant, none can be served, or only a stand-in for a backend that the
                server brings; a stand-in is never taken unasked.
        """
        if forced is not None:
            self._check_forced(machine, forced)
            return forced, ()
        skipped: list[tuple[str, str]] = []
        for name, entry in self.read.variants.items():
            why = stands_in(entry, machine) or self._unusable(entry, machine) or self._no_effect(parameters or {}, name)
            if why is None:
                return name, tuple(skipped)
            skipped.append((name, why))
        raise self._none_left(machine, skipped)

    def serve(
        self, model: str, parameters: Mapping[str, Any], variant: str, place: BuildsFiles | None = None
    ) -> ServedModel:
        """Make the model's files and build its backend, if it is ours.

        Args:
            model: Name of the model and its directory.
            variant: A variant that `choose_variant` gave.
            place: Builds model files, and maybe our backends, where the server will run; None: they are built here.

        Raises:
            TemplateError: A wrong parameter, one that has no effect in this variant, or something that cannot be built.

        A build script has ended when this returns, so that nothing of it is on the GPU while the server runs.
        """
        entry = self._entry(variant)
        values = read_parameters(self.read, parameters)
        no_effect = self._no_effect(parameters, variant)
        if no_effect is not None:
            raise TemplateError(f"the variant {variant!r} of the model template {self.name!r}: {no_effect}")
        inputs = tuple(self._tensor(tensor, values) for tensor in self.read.inputs)
        return ServedModel(
            name=model,
            template=self.name,
            variant=variant,
            needs_gpu="gpu" in entry.needs,
            files={
                **dict(self._files(variant, {**values, "backend": entry.backend})),
                **self._built(variant, values, place),
            },
            backends=_build_backend(entry, place),
            inputs=inputs,
            outputs=tuple(self._tensor(tensor, values) for tensor in self.read.outputs),
            formulas=self._formulas(),
            max_batch_size=int(values.get("max_batch_size", 0)),
        )

    def _entry(self, variant: str) -> VariantEntry:
        if variant not in self.read.variants:
            raise TemplateError(
                f"the model template {self.name!r} has no variant {variant!r}",
                hint=nearest(variant, self.read.variants, "its variants"),
            )
        return self.read.variants[variant]

    def _check_forced(self, machine: Machine, forced: str) -> None:
        why = self._unusable(self._entry(forced), machine)
        if why is not None:
            raise TemplateError(
                f"the variant {forced!r} of the model template {self.name!r} cannot be served here: {why}",
                hint=f"variants: {', '.join(self.variants)}; one that is named has no fallback",
            )

    def _unusable(self, entry: VariantEntry, machine: Machine) -> str | None:
        missing = next((why for need in entry.needs if (why := unmet(need, machine)) is not None), None)
        if missing is not None or entry.build is None:
            return missing
        try:
            return foreign_plan(find_builder(self.folder / entry.build, machine.place), machine)
        except TemplateError as error:
            return error.message.splitlines()[-1]

    def _built(self, variant: str, values: Mapping[str, Any], place: BuildsFiles | None) -> dict[str, Path]:
        """Build the variant's model file, in version directory 1."""
        entry = self.read.variants[variant]
        if entry.build is None or entry.file is None:
            return {}
        used = {
            name: values[name]
            for name, parameter in self.read.parameters.items()
            if variant in parameter.only or not parameter.only
        }
        return {f"1/{entry.file}": build_model_file(self.folder / entry.build, entry.file, used, place).file}

    def _none_left(self, machine: Machine, skipped: Sequence[tuple[str, str]]) -> TemplateError:
        why = "".join(f"\n  {name}: {reason}" for name, reason in skipped)
        stand_ins = [name for name, entry in self.read.variants.items() if stands_in(entry, machine)]
        hint = "name one that needs less"
        if stand_ins:
            hint = f"a stand-in must be asked for by name, such as `variant: {stand_ins[0]}`"
        return TemplateError(f"no variant of the model template {self.name!r} can be served here:{why}", hint=hint)

    def _no_effect(self, parameters: Mapping[str, Any], variant: str) -> str | None:
        names = parameters_without_effect(self.read, parameters, variant)
        return f"the parameter {names[0]!r} has no effect in it" if names else None

    def _tensor(self, entry: TensorEntry, values: Mapping[str, Any]) -> Tensor:
        where = f"{self.folder / _FILE}, tensor {entry.name!r}"
        datatype, dims = resolve(entry.datatype, values, where), resolve(entry.dims, values, where)
        if datatype not in DATATYPES or not isinstance(dims, list):
            raise TemplateError(f"{where}: found datatype {datatype!r} and dims {dims!r}")
        return Tensor(entry.name, datatype, tuple(dims))

    def _formulas(self) -> dict[str, Formula]:
        names = [*(tensor.name for tensor in self.read.inputs), MODEL_VERSION]
        return {
            output.name: parse_formula(output.expected, names)
            for output in self.read.outputs
            if output.expected is not None
        }

    def _files(self, variant: str, values: Mapping[str, Any]) -> Iterator[tuple[str, bytes | Path]]:
        """Yield the folder's own files, then those of the variant's folder, which are laid over them."""
        own = {self.folder / _FILE, *(self.folder / name for name in (*self.read.variants, "__pycache__"))}
        scripts = [self.folder / entry.build for entry in self.read.variants.values() if entry.build]
        for root in (self.folder, self.folder / variant):
            for path in sorted(root.rglob("*")):
                inside = path.relative_to(root)
                if path.is_dir() or "__pycache__" in inside.parts or (root / inside.parts[0]) in own:
                    continue
                if any(is_build_source(path, script) for script in scripts):
                    continue
                content = render(path.read_text("utf-8"), path, self.read, values) if is_rendered(path) else None
                yield inside.as_posix(), path if content is None else content.encode()


def _build_backend(entry: VariantEntry, place: BuildsFiles | None) -> dict[str, Path]:
    if entry.native is None:
        return {}
    sources = sorted((_PACKAGE / entry.native).glob("*.c"))
    compile_shared = place.compile_shared if isinstance(place, CompilesLibraries) else native.compile_shared
    library = compile_shared(f"triton_{entry.backend}", sources, _BACKEND_FLAGS)
    return {entry.backend: library.parent}


def template_names(extra: Sequence[Path] = ()) -> list[str]:
    """Names of the model templates in some folders and of those that come with tritonchaos."""
    folders = [*extra, shipped_folder("model_templates")]
    return sorted({path.parent.name for folder in folders for path in folder.glob(f"*/{_FILE}")})


def find_template(name: str, extra: Sequence[Path] = ()) -> ModelTemplate:
    """Find a model template by name.

    Args:
        extra: Folders of model templates that go before those of tritonchaos.

    Raises:
        TemplateError: There is none of that name, or its template.yaml is wrong.
    """
    names = template_names(extra)
    # Only names of folders that were listed: a name can never lead out of them.
    if name not in names:
        raise TemplateError(f"there is no model template {name!r}", hint=nearest(name, names, "model templates"))
    folder = next(f / name for f in [*extra, shipped_folder("model_templates")] if (f / name / _FILE).is_file())
    return ModelTemplate(folder, read_template_file(folder / _FILE))
