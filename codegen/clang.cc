/*
 * clang.cc: Clang and LLD in this process. A module of its own, loaded when
 * something must be compiled: compile.c. Sources, the few headers that they
 * need and their objects stay in memory, so neither a compiler nor Clang's
 * own headers need be installed.
 */
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticIDs.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>
#if LLVM_VERSION_MAJOR >= 17
#include <llvm/TargetParser/Host.h>
#else
#include <llvm/Support/Host.h>
#endif

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "codegen/clang.h"

#if LLVM_VERSION_MAJOR >= 17
LLD_HAS_DRIVER(elf)
#endif

namespace {

using llvm::StringRef;

const char std_dir[] = "/sbpc/std/";
const char source_dir[] = "/sbpc/src/";

/* What emitted code may include beside its own headers. */
const struct clang_source std_headers[] = {
	{"stddef.h", R"(#ifndef SBPC_STDDEF
#define SBPC_STDDEF
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __WCHAR_TYPE__ wchar_t;
#define NULL ((void *)0)
#define offsetof(t, m) __builtin_offsetof(t, m)
#endif
)"},
	{"stdbool.h", R"(#ifndef SBPC_STDBOOL
#define SBPC_STDBOOL
#define bool _Bool
#define true 1
#define false 0
#endif
)"},
	{"stdint.h", R"(#ifndef SBPC_STDINT
#define SBPC_STDINT
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTMAX_TYPE__ intmax_t;
typedef __UINTMAX_TYPE__ uintmax_t;
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define UINT32_MAX 4294967295u
#define INT64_C(c) __extension__ c##L
#define UINT64_C(c) __extension__ c##UL
#define INT64_MAX 9223372036854775807L
#define INT64_MIN (-9223372036854775807L - 1)
#define UINT64_MAX 18446744073709551615uL
#endif
)"},
	{"limits.h", R"(#ifndef SBPC_LIMITS
#define SBPC_LIMITS
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#endif
)"},
	{"string.h", R"(#ifndef SBPC_STRING
#define SBPC_STRING
#include <stddef.h>
void *memcpy(void *restrict, const void *restrict, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
#endif
)"},
	{"math.h", R"(#ifndef SBPC_MATH
#define SBPC_MATH
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VAL (__builtin_inf())
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#define F(f) double f(double); float f##f(float);
F(fabs) F(sqrt) F(exp) F(log) F(log1p) F(expm1) F(sin) F(cos) F(tan) F(tanh)
F(erf) F(floor) F(ceil) F(trunc) F(rint) F(nearbyint) F(round)
#undef F
double pow(double, double);
float powf(float, float);
double fmod(double, double);
float fmodf(float, float);
double fmax(double, double);
float fmaxf(float, float);
double fmin(double, double);
float fminf(float, float);
double fma(double, double, double);
float fmaf(float, float, float);
double copysign(double, double);
float copysignf(float, float);
#endif
)"},
};

using Files = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;

/* All sources and headers, over the real files. */
Files files_of(const struct clang_job *job)
{
	auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
	auto add = [&](const char *dir, const struct clang_source &s) {
		memory->addFile(std::string(dir) + s.name, 0,
				llvm::MemoryBuffer::getMemBuffer(s.text,
								 s.name));
	};

	for (const auto &header : std_headers)
		add(std_dir, header);
	for (int i = 0; i < job->nsources; i++)
		add(source_dir, job->sources[i]);
	auto all = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(
		llvm::vfs::getRealFileSystem());
	all->pushOverlay(memory);
	return all;
}

llvm::StringMap<bool> host_features()
{
#if LLVM_VERSION_MAJOR >= 19
	return llvm::sys::getHostCPUFeatures();
#else
	llvm::StringMap<bool> features;

	llvm::sys::getHostCPUFeatures(features);
	return features;
#endif
}

/* -target-cpu and -target-feature. */
void add_target(const struct clang_job *job, std::vector<std::string> &args)
{
	bool native = !strcmp(job->arch, "native");

	args.push_back("-target-cpu");
	args.push_back(native ? llvm::sys::getHostCPUName().str() : job->arch);
	if (!native)
		return;
	for (const auto &feature : host_features()) {
		args.push_back("-target-feature");
		args.push_back((feature.second ? "+" : "-") +
			       feature.first().str());
	}
}

/* What the driver would give to cc1. No fused multiply-adds of its own and
 * no fast math: the same source gives the same bits everywhere. */
std::vector<std::string> arguments(const struct clang_job *job,
				   const char *name)
{
	std::vector<std::string> args = {
		"-triple", llvm::sys::getProcessTriple(), "-emit-obj",
		"-O" + std::to_string(job->opt), "-std=c11",
		"-ffp-contract=off", "-mrelocation-model",
		job->pic ? "pic" : "static", "-pic-level",
		job->pic ? "2" : "0", "-mframe-pointer=none",
		"-mprefer-vector-width=512",
		"-ffunction-sections", "-fdata-sections", "-nostdsysteminc",
		"-nobuiltininc", "-internal-isystem", std_dir, "-I",
		job->include_dir, "-main-file-name", name, "-x", "c",
	};

	if (job->opt > 1) {
		args.push_back("-vectorize-loops");
		args.push_back("-vectorize-slp");
	}
	add_target(job, args);
	args.push_back(std::string(source_dir) + name);
	return args;
}

bool is_header(const char *name)
{
	size_t n = strlen(name);

	return n > 2 && !strcmp(name + n - 2, ".h");
}

/* One translation unit. */
bool compile(const struct clang_job *job, Files files, const char *name,
	     llvm::SmallVectorImpl<char> &object, std::string &messages)
{
	llvm::raw_string_ostream out(messages);
	llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(
		new clang::DiagnosticOptions());
	clang::TextDiagnosticPrinter printer(out, &*options);
	llvm::IntrusiveRefCntPtr<clang::DiagnosticIDs> ids(
		new clang::DiagnosticIDs());
	clang::DiagnosticsEngine engine(ids, options, &printer, false);
	std::vector<std::string> texts = arguments(job, name);
	std::vector<const char *> args;
	auto invocation = std::make_shared<clang::CompilerInvocation>();
	clang::CompilerInstance instance;

	for (const auto &text : texts)
		args.push_back(text.c_str());
	if (!clang::CompilerInvocation::CreateFromArgs(*invocation, args,
						       engine))
		return false;
	instance.setInvocation(invocation);
	instance.createDiagnostics(&printer, false);
	instance.createFileManager(files);
	instance.setOutputStream(
		std::make_unique<llvm::raw_svector_ostream>(object));
	clang::EmitObjAction action;
	return instance.ExecuteAction(action);
}

/* An object's bytes as a file without a name. */
class Memory_file
{
      public:
	~Memory_file()
	{
		if (fd >= 0)
			close(fd);
	}
	bool put(StringRef bytes)
	{
		fd = memfd_create("sbpc", MFD_CLOEXEC);
		path = "/proc/self/fd/" + std::to_string(fd);
		while (fd >= 0 && !bytes.empty()) {
			ssize_t n = write(fd, bytes.data(), bytes.size());

			if (n < 0)
				return false;
			bytes = bytes.drop_front(n);
		}
		return fd >= 0;
	}
	std::string path;

      private:
	int fd = -1;
};

struct Unit {
	const char *name;
	llvm::SmallVector<char, 0> object;
	std::string messages;
	bool done = false;
};

/* Compiles all units, as many at a time as there are processors. */
bool compile_all(const struct clang_job *job, std::vector<Unit> &units,
		 std::string &messages)
{
	std::atomic<size_t> next{0};
	auto work = [&]() {
		for (size_t i; (i = next++) < units.size();) {
			Unit &u = units[i];

			u.done = compile(job, files_of(job), u.name, u.object,
					 u.messages);
		}
	};
	size_t n = std::min<size_t>(units.size(),
				    std::thread::hardware_concurrency());
	std::vector<std::thread> threads;
	bool done = true;

	for (size_t i = 1; i < n; i++)
		threads.emplace_back(work);
	work();
	for (auto &thread : threads)
		thread.join();
	for (const auto &u : units) {
		done = done && u.done;
		messages += u.messages;
	}
	return done;
}

bool link(const struct clang_job *job, const std::vector<Unit> &units,
	  std::string &messages)
{
	llvm::raw_string_ostream out(messages);
	std::vector<Memory_file> objects(units.size());
	std::vector<const char *> args = {"ld.lld", "-o", job->path};
	bool done;

	for (size_t i = 0; i < units.size(); i++) {
		const auto &bytes = units[i].object;

		if (!objects[i].put(StringRef(bytes.data(), bytes.size()))) {
			messages = "no memory for an object file";
			return false;
		}
	}
	for (int i = 0; i < job->nlink; i++) {
		if (strcmp(job->link[i], "%objects")) {
			args.push_back(job->link[i]);
			continue;
		}
		for (const auto &object : objects)
			args.push_back(object.path.c_str());
	}
	done = lld::elf::link(args, out, out, false, false);
	lld::CommonLinkerContext::destroy();
	return done;
}

/* Whether Clang knows the processor. */
bool known_arch(const char *arch)
{
	std::string triple = llvm::sys::getProcessTriple(), error;
	const auto *target =
		llvm::TargetRegistry::lookupTarget(triple, error);

	if (!strcmp(arch, "native") || !target)
		return true;
	std::unique_ptr<llvm::MCSubtargetInfo> info(
		target->createMCSubtargetInfo(triple, "", ""));
	return !info || info->isCPUStringValid(arch);
}

int run(const struct clang_job *job, std::string &messages)
{
	size_t n = 0;

	if (!known_arch(job->arch)) {
		messages = std::string("--arch: processor '") + job->arch +
			   "' is not known to Clang";
		return 1;
	}
	for (int i = 0; i < job->nsources; i++)
		n += !is_header(job->sources[i].name);
	std::vector<Unit> units(n);
	for (int i = 0, at = 0; i < job->nsources; i++)
		if (!is_header(job->sources[i].name))
			units[at++].name = job->sources[i].name;
	if (!compile_all(job, units, messages))
		return 2;
	return link(job, units, messages) ? 0 : 1;
}

/* LLVM gives up: it would exit with 1, an error in the user's program. */
void give_up(void *, const char *reason, bool)
{
	fprintf(stderr, "sbpc: bug: LLVM: %s\n", reason);
	_exit(3);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int
sbpc_clang_run(const struct clang_job *job, char **error)
{
	std::string messages;
	int status;

	static bool ready;

	if (!ready)
		llvm::install_fatal_error_handler(give_up);
	ready = true;
	llvm::InitializeNativeTarget();
	llvm::InitializeNativeTargetAsmPrinter();
	llvm::InitializeNativeTargetAsmParser();
	status = run(job, messages);
	if (status)
		*error = strdup(messages.c_str());
	return status;
}
