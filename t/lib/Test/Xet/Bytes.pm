package Test::Xet::Bytes;

# Copyright (C) the ngx_http_xet_module authors

# Builds protocol bytes with build/tools/xet_make; see t/tools/xet_make.c.

use warnings;
use strict;

use parent qw/ Exporter /;

use Digest::SHA qw/ hmac_sha256 /;
use File::Temp qw/ tempdir /;
use IO::Handle;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64url /;
use POSIX ();

use Test::Xet::Process qw/ build_dir reap slurp spawn spew /;

our @EXPORT = qw/
	decode_xorb derived_key hash_file keyed_hash make_large_shard
	make_shard make_xorb mix parse_shard plain_hash random_bytes raw_hash
	schemes url_mac xorb_info
/;

my ($dir, $owner);
my $n = 0;

sub tool {
	my $tool = $ENV{XET_TEST_MAKE} || build_dir() . '/tools/xet_make';

	die "no $tool: run make tools first\n" unless -x $tool;

	return $tool;
}

# Returns a new name for a temporary file.

sub scratch {
	if (!defined $dir || $owner != $$) {
		$dir = tempdir('xet-bytes-XXXXXX', TMPDIR => 1, CLEANUP => 1);
		$owner = $$;
	}

	return "$dir/" . ++$n;
}

# Starts a process that runs all later commands.  Tests with thousands of
# commands would otherwise be slow.

my %server;

sub serve {
	return if %server;

	pipe(my $in, $server{to}) or die "pipe: $!\n";
	pipe($server{from}, my $out) or die "pipe: $!\n";

	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		open(STDIN, '<&', $in) && open(STDOUT, '>&', $out)
			&& exec { tool() } tool(), 'serve';
		POSIX::_exit(127);
	}

	# a fork of the test would mix its commands with those of its parent

	@server{qw/ pid owner /} = ($pid, $$);
	Test::Xet::Process::own($pid);

	binmode($_) for @server{qw/ to from /};
	$server{to}->autoflush(1);
}

sub ask_server {
	my ($args, $stdin) = @_;

	local $SIG{PIPE} = 'IGNORE';

	print { $server{to} } join(' ', length($stdin), @$args), "\n", $stdin;

	my ($status, $length) = (readline($server{from}) // '')
		=~ /^(\d+) (\d+)$/ or die "xet_make serve has ended\n";

	my $text = '';

	while (length($text) < $length) {
		read($server{from}, $text, $length - length($text),
			length($text)) or die "xet_make serve: $!\n";
	}

	return $text if $status == 0;
	die "xet_make $status: " . substr($text, -300);
}

# Runs the tool: returns its output, or dies with its error message.

sub run_tool {
	my ($args, $stdin) = @_;

	return ask_server($args, $stdin // '')
		if %server && $server{owner} == $$;

	my ($in, $out) = (scratch(), scratch());

	spew($in, $stdin // '');

	my $pid = spawn([ tool(), @$args ], stdin => $in, output => $out);
	my $status = reap($pid, 60);
	my $text = slurp($out, 1) // '';

	unlink($in, $out);

	return $text if defined $status && $status == 0;
	die 'xet_make ' . ($status // 'hangs') . ': ' . substr($text, -300);
}

sub run_json {
	return JSON::PP->new->utf8->decode(run_tool(@_));
}

# Return deterministic data: noise, or a mix that resembles models and text.
# Shorter data is a prefix of longer data with the same seed.

sub random_bytes {
	my ($seed, $size) = @_;

	return run_tool([ 'random', $seed, $size ]);
}

sub mix {
	my ($seed, $size) = @_;

	return run_tool([ 'mix', $seed, $size ]);
}

# Returns 32 bytes of HKDF-SHA256 without a salt, as src/core/access/xet_key.c
# does.  A key with this label signs data URLs.

sub derived_key {
	my ($secret, $label) = @_;

	return hmac_sha256(($label // 'xet data url 1') . "\x01",
		hmac_sha256($secret, "\0" x 32));
}

# Returns the signature of a data URL, of its text from the namespace to the
# key id, as described in src/core/access/xet_access.h.

sub url_mac {
	my ($text, $key) = @_;

	return encode_base64url(hmac_sha256($text, $key));
}

# Return the bytes of a hash string, in which each 8 bytes are reversed; and
# these bytes as plain hex, as PostgreSQL prints them.

sub raw_hash {
	return join('', map { scalar reverse(pack('H*', $_)) }
		unpack('(a16)4', $_[0]));
}

sub plain_hash {
	return unpack('H*', raw_hash($_[0]));
}

# Returns { hash, size, root, chunks => [ { hash, raw_length } ] }.  root is the
# hash of a xorb with all chunks.  sizes => [ ... ] sets the chunk sizes; by
# default the chunker cuts.

sub hash_file {
	my ($data, %o) = @_;

	return run_json([ 'hash-file', sizes(%o) ], $data);
}

sub sizes {
	my (%o) = @_;

	return () unless defined $o{sizes};
	return ('--sizes', ref $o{sizes} ? join(',', @{ $o{sizes} })
		: $o{sizes});
}

# Returns the names of the compression schemes, indexed by number.

my $schemes;

sub schemes {
	$schemes //= run_json([ 'schemes' ]);

	return @$schemes;
}

# Makes a xorb of the data, and returns { hash, bytes, raw_size, stored_size,
# chunks => [ { hash, raw_start, raw_length, stored_start, stored_end } ] }.
# stored_size excludes a footer, bytes includes it.
#
#     scheme  one of schemes(), auto
#     footer  v0, v1
#     sizes   [ ... ], chunk sizes; the last one repeats
#     large   1: may exceed the limits of a xorb

sub make_xorb {
	my ($data, %o) = @_;

	my $file = scratch();
	my $xorb = run_json([ 'xorb', sizes(%o),
		map({ $o{$_} ? ("--$_", $o{$_}) : () } qw/ scheme footer /),
		$o{large} ? '--large' : (), $file ], $data);

	$xorb->{bytes} = slurp($file);
	unlink($file);

	return $xorb;
}

# Makes a shard from a description (t/tools/xet_make/xet_make_shard.c), whose
# xorbs may be results of make_xorb().  Returns { bytes, files => [ { hash, size
# } ] }.

sub make_shard {
	my ($spec) = @_;

	my ($in, $file) = (scratch(), scratch());
	my @xorbs = map { { %$_, bytes => '', data => '' } }
		@{ $spec->{xorbs} || [] };

	spew($in, JSON::PP->new->utf8->canonical->encode(
		{ %$spec, xorbs => \@xorbs }));
	my $shard = run_json([ 'shard', $in, $file ]);

	$shard->{bytes} = slurp($file);
	unlink($in, $file);

	return $shard;
}

# Makes a shard of many files of one xorb, each file a list of terms
# [ start, end ].  Writes the JSON itself, because JSON::PP is slow.
#
#     each, last  JSON members of each file, or of the last one: "name":value,

sub make_large_shard {
	my ($xorb, $files, %o) = @_;

	my ($in, $file) = (scratch(), scratch());
	my $last = $#$files;

	my $chunks = join(',', map { "{\"hash\":\"$_->{hash}\","
		. "\"raw_length\":$_->{raw_length}}" } @{ $xorb->{chunks} });
	my $text = join(',', map { my $n = $_;
		'{' . ($o{each} // '') . ($n == $last ? $o{last} // '' : '')
		. '"terms":[' . join(',', map { "{\"xorb\":\"$xorb->{hash}\","
			. "\"start\":$_->[0],\"end\":$_->[1]}" }
			@{ $files->[$n] }) . ']}'
	} 0 .. $last);

	spew($in, "{\"files\":[$text],\"xorbs\":[{\"hash\":"
		. "\"$xorb->{hash}\",\"chunks\":[$chunks]}]}");

	my $json = run_tool([ 'shard', $in, $file ]);
	my $bytes = slurp($file);

	unlink($in, $file);

	return { bytes => $bytes, files => [ map { { hash => $_ } }
		$json =~ /"hash":"(\w{64})"/g ] };
}

sub with_file {
	my ($command, $bytes, $run, @args) = @_;

	my $file = scratch();
	spew($file, $bytes);

	my @result = eval { $run->([ $command, $file, @args ]) };
	my $error = $@;

	unlink($file);
	die $error if $error;

	return $result[0];
}

# The following functions read bytes from outside, and die if they are invalid.

sub parse_shard {
	my ($bytes) = @_;

	return with_file('parse-shard', $bytes, \&run_json);
}

sub xorb_info {
	my ($bytes) = @_;

	return with_file('xorb-info', $bytes, \&run_json);
}

# Returns the raw bytes of a run of chunk records: all, or [ start, end ).

sub decode_xorb {
	my ($bytes, @range) = @_;

	return with_file('decode-xorb', $bytes, \&run_tool, @range);
}

sub keyed_hash {
	my ($key, $hash) = @_;

	my $keyed = run_tool([ 'keyed', $key, $hash ]);
	chomp($keyed);

	return $keyed;
}

1;
