#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The command line: hashes as clients compute them, checks of xorbs and shards,
# exit codes, help, completion and the manual page.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Bytes;
use Test::Xet::Cli;
use Test::Xet::Process qw/ root slurp spew /;

use File::Temp qw/ tempdir /;

my $xet = Test::Xet::Cli::binary();
my $dir = tempdir(CLEANUP => 1);

for my $size (0, 1, 8192, 131073, 3000000) {
	my $data = mix(3, $size);

	spew("$dir/file", $data);
	is(run('hash', "$dir/file"), hash_file($data)->{hash}
		. " $size $dir/file\n", "hash of $size bytes");
}

is($?, 0, 'hash: exit code');

my $xorb = make_xorb(mix(4, 500000));
my $chunks = @{ $xorb->{chunks} };

spew("$dir/$xorb->{hash}", $xorb->{bytes});
like(run('info', "$dir/$xorb->{hash}"),
	qr/: xorb\n +hash +$xorb->{hash}\n +chunks +$chunks\n/, 'xorb');
is($?, 0, 'xorb: exit code');

spew("$dir/" . 'ab' x 32, $xorb->{bytes});
like(run('info', "$dir/" . 'ab' x 32), qr/does not match the xorb hash/,
	'xorb under another name');
is($? >> 8, 1, 'xorb under another name: exit code');

# the file names of stored copies end in a copy id

spew("$dir/$xorb->{hash}.0a1b2c3d", $xorb->{bytes});
like(run('info', "$dir/$xorb->{hash}.0a1b2c3d"),
	qr/: xorb\n +hash +$xorb->{hash}\n +chunks +$chunks\n/, 'a copy');
is($?, 0, 'a copy: exit code');

spew("$dir/" . 'ab' x 32 . '.0a1b2c3d', $xorb->{bytes});
like(run('info', "$dir/" . 'ab' x 32 . '.0a1b2c3d'),
	qr/does not match the xorb hash/, 'a copy under another name');
is($? >> 8, 1, 'a copy under another name: exit code');

spew("$dir/$xorb->{hash}.ffffffff", 'x' . substr($xorb->{bytes}, 1));
run('info', "$dir/$xorb->{hash}.ffffffff");
is($? >> 8, 1, 'a copy with another first byte: exit code');

my $shard = make_shard({ files => [ { terms => [ { xorb => $xorb->{hash},
	start => 0, end => $chunks, chunks => $xorb->{chunks} } ] } ],
	xorbs => [ $xorb ] });

spew("$dir/shard", $shard->{bytes});
like(run('info', "$dir/shard"), qr/file $shard->{files}[0]{hash}, 1 terms/,
	'shard');
is($?, 0, 'shard: exit code');

spew("$dir/shard", substr($shard->{bytes}, 0, 200));
run('info', "$dir/shard");
is($? >> 8, 1, 'cut shard: exit code');

run('info', "$dir/missing");
is($? >> 8, 3, 'missing file: exit code');
run();
is($? >> 8, 2, 'no verb: exit code');
run('nothing', 'x');
is($? >> 8, 2, 'unknown verb: exit code');
like(run('--help'), qr/^usage: xet VERB .*^Files:\n.*^  hash +\w/ms, 'help');
is($?, 0, 'help: exit code');

# --------------------------------------------------------------------------
# JSON

spew("$dir/file", mix(3, 3000000));

my $r = xet(undef, 'hash', '--json', "$dir/file", "$dir/$xorb->{hash}");
my $hash = hash_file(mix(3, 3000000));

is_deeply($r->{json}[0], { file => "$dir/file", hash => $hash->{hash},
	size => 3000000, chunks => scalar(@{ $hash->{chunks} }) },
	'hash --json');
is($r->{json}[1]{file}, "$dir/$xorb->{hash}", 'of two files');

spew("$dir/whole", $shard->{bytes});
$r = xet(undef, 'info', '--json', "$dir/$xorb->{hash}", "$dir/whole");
is($r->{json}[0]{kind}, 'xorb', 'info --json: a xorb');
is($r->{json}[0]{raw_size}, 500000, 'its size');
is($r->{json}[1]{files}, 1, 'a shard');
is_deeply($r->{json}[1]{records}[0], { file => $shard->{files}[0]{hash},
	terms => 1 }, 'its records');

$r = xet(undef, 'info', '--json', "$dir/shard");
is($r->{code}, 1, 'info --json: a cut shard');
ok(!$r->{json}[0]{ok}, 'is not ok');

is(xet(undef, { stdin => "$dir/file" }, 'hash', '-')->{out},
	"$hash->{hash} 3000000 -\n", 'the standard input');
is(xet(undef, 'info', '/dev/null')->{code}, 0, 'info of nothing');

# names of files may contain any byte

like(xet(undef, 'hash', "$dir/a\nb\e[1m")->{err},
	qr/\Axet: \Q$dir\E\/a\\x0ab\\x1b\[1m: No such file or directory\n\z/,
	'one line, and no escapes');

# an output that cannot be written is an error

is(system("$xet hash $dir/file > /dev/full 2> $dir/err") >> 8, 3,
	'a full disk');
like(slurp("$dir/err"), qr/^xet: standard output: /, 'with an error message');

# --------------------------------------------------------------------------
# the help lists each verb on one line; the manual page has exactly the verbs
# and options of the help

my $help = xet(undef, 'help')->{out};
my $man = slurp(root() . '/docs/xet.1') =~ s/\\-/-/gr =~ s/\\f.//gr;

my @verbs = $help =~ /^  (\w+) +\w/mg;
my %help;

is(join(' ', sort @verbs), join(' ', verbs_of_the_table()), 'all verbs');
unlike($help, qr/^.{81}/m, 'of one line each');

for my $verb (@verbs) {
	my $text = xet(undef, $verb, '--help')->{out};

	like($man, qr/^\.BI? "?$verb\b/m, "verb in the manual: $verb");
	like($text,
		qr/\Ausage: xet $verb\b.*^  -h, --help.*^Examples:\n  .*xet /ms,
		"$verb --help");
	unlike($text, qr/^(?!  xet ).{81}/m, "$verb --help: the width");
	like($text, qr/^      --json /m, "$verb: JSON")
		if $verb ne 'completion';
	is(xet(undef, 'help', $verb)->{code}, 0, "help $verb");

	$help{$_} = 1 for $text =~ /^ .{4} --([\w-]+)/mg;
}

my ($options) = $man =~ /^\.SH OPTIONS\n(.*?)^\.SH/ms;
my %man = map { $_ => 1 } $options =~ /^\.BI?R?.* ?--([\w-]+)/mg;

is_deeply([ sort keys %man ], [ sort keys %help ], 'options in the manual');

is(xet(undef, 'help', 'nothing')->{code}, 2, 'help for no verb');

# --------------------------------------------------------------------------
# topics

my $topics = xet(undef, 'help', 'topics')->{out};
my @topics = $topics =~ /^  (\w+) +\w/mg;

is(join(' ', @topics), join(' ', slurp(root() . '/src/cli/base/topics.def')
	=~ /^XET_CLI_TOPIC\("(\w+)"/mg), 'all topics');

for my $topic (@topics) {
	$r = xet(undef, 'help', $topic);
	is($r->{code}, 0, "help $topic");
	unlike($r->{out}, qr/^.{81}/m, "help $topic: the width");
}

like(xet(undef, 'help', 'environment')->{out}, qr/^  $_ /m,
	"help environment: $_")
	for $man =~ /^\.SH ENVIRONMENT\n(.*?)^\.SH/ms
		? $1 =~ /^\.B (\w+)\n/mg : 'section';

# --------------------------------------------------------------------------
# completion

is(complete('re'), "rebuild repo restore\n", 'completion: verbs');
is(complete('help', 'mi'), "migrate\n", 'completion: verbs of help');
is(complete('gc', '--'), "--dry-run --grace --json --postgres --help\n",
	'completion: options');
is(complete('hash', 'x'), "\n", 'completion: files are left to the shell');
like(run('completion', 'zsh'), qr/\A#compdef xet\n.*compdef _xet xet$/ms,
	'completion: zsh');

SKIP: {
	skip 'no zsh', 1 if system('zsh -c : 2> /dev/null');

	is(system("$xet completion zsh | zsh -n"), 0,
		'completion: zsh reads it');
}

SKIP: {
	skip 'no fish', 2 if system('fish -c : 2> /dev/null');

	is(fish('xet mi'), 'migrate', 'completion: fish: verbs');
	is(fish('xet gc --dr'), '--dry-run', 'completion: fish: options');
}

run('completion', 'nothing');
is($? >> 8, 2, 'completion: of no shell');

done_testing();

sub run {
	my (@args) = @_;

	return scalar `$xet @args 2>&1`;
}

# Returns the verbs in verbs.def, sorted.

sub verbs_of_the_table {
	return sort(slurp(root() . '/src/cli/base/verbs.def')
		=~ /^XET_CLI_VERB\("(\w+)"/mg);
}

# Returns the completions that fish offers for a line.

sub fish {
	my ($line) = @_;

	spew("$dir/fish", "$xet completion fish | source\n"
		. "complete -C '$line'\n");

	return join(' ', split(/\n/, scalar `fish $dir/fish`));
}

# Returns the completions that bash offers for the last of these words after
# "xet".

sub complete {
	my (@words) = @_;

	spew("$dir/complete", "eval \"\$($xet completion bash)\"\n"
		. "COMP_WORDS=(xet @words)\nCOMP_CWORD=" . @words . "\n"
		. "_xet\necho \"\${COMPREPLY[*]}\"\n");

	return scalar `bash $dir/complete`;
}
