package Test::Xet::Rights::Request;

# Copyright (C) the ngx_http_xet_module authors

# Builds a request for a thing, by a route of the table, with everything that
# the route needs to return 2xx to a permitted caller.  A part of
# Test::Xet::Rights.
#
#     my ($method, $uri, $headers, $body) = $self->request($place, $route,
#         $method, $caller, $thing, $letter);
#
# A request that deletes or changes a thing gets a new thing, if the table says
# that the caller is permitted.

use warnings;
use strict;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

use Test::Xet::Bytes;

my $json = JSON::PP->new()->canonical();

# Paths inside a repo, for routes that do not name the usual file.

my %paths = ('tree' => 'd', 'blob' => 'd/f.bin');

sub request {
	my ($self, $place, $route, @rest) = @_;

	return !exists $route->{version} ? $self->hub_request($route, @rest)
		: $self->api_request($place, $route, @rest);
}

# --------------------------------------------------------------------------
# the Hub

sub hub_request {
	my ($self, $route, $method, $caller, $thing, $letter) = @_;

	my $handler = $self->handler('hub', $route->{form}, $method);
	my $s = $self->thing($thing, $caller);
	my $make = $self->can('hub_' . lc($method) . "_$handler")
		|| $self->can("hub_$handler");
	my %o = $make ? $make->($self, $s, $caller, $letter, $route) : ();

	$s = $o{thing} if $o{thing};

	return ($method, $self->{base} . hub_path($route->{form}, $s, \%o),
		{ defined $o{type} ? ('Content-Type' => $o{type}) : (),
			$o{headers} ? %{ $o{headers} } : () },
		defined $o{body} ? (ref $o{body} ? $json->encode($o{body})
			: $o{body}) : $method =~ /^P/ ? '{}' : undef,
		$o{after});
}

sub hub_path {
	my ($form, $s, $o) = @_;

	my $path = $form eq ':root' ? '' : $form;
	my ($kind) = $form =~ /(tree|:view)/;

	$path =~ s!:type!models!;
	$path =~ s!:view!tree!;
	$path =~ s!:(?:id|repo)!$s->{id}!;
	$path =~ s!:git!$s->{id}.git!;
	$path =~ s!:owner!$s->{owner}!;
	$path =~ s!:rev!$o->{rev} // 'main'!e;
	$path =~ s!:path!$paths{ $kind // '' } // 'd/f.bin'!e;

	return "/$path" . ($o->{args} // '');
}

# Creates a private or public repo, which the request may delete.

sub fresh {
	my ($self, $thing, $kind) = @_;

	my $private = $thing->{name} ne 'zopenz';
	my $name = 'znew' . ++$self->{fresh};
	my $owner = $thing->{owner};
	my $admin = $self->admin($owner);

	$private = $private ? JSON::PP::true : JSON::PP::false;

	if ($kind eq 'buckets') {
		$self->send('POST', "$self->{base}/api/buckets/$owner/$name",
			$admin, $json->encode({ private => $private }));

	} else {
		$self->send('POST', "$self->{base}/api/repos/create", $admin,
			$json->encode({ name => $name, organization => $owner,
				private => $private }));
	}

	my $s = { name => $name, owner => $owner, id => "$owner/$name" };

	$s->{store} = $self->store("$kind/$s->{id}",
		$kind eq 'buckets' ? '' : '/main', $admin);

	return $s;
}

# Returns the headers of a caller whose token is for a repo that was created
# just now.

sub as_bound {
	my ($self, $caller, $s, $letter) = @_;

	return {} unless ($caller->{repo} // '') eq 'S' && allowed($letter);

	return $self->headers({ %$caller, fresh => 1, repo => $s->{store} });
}

sub allowed { return $_[0] =~ /^[os]$/ }

sub hub_create {
	my ($self, $s, $caller) = @_;

	return (body => { name => 'zmade' . ++$self->{fresh},
		organization => $self->space_of($s, $caller),
		private => JSON::PP::true });
}

sub hub_bucket_create {
	my ($self, $s, $caller) = @_;

	return (body => { private => JSON::PP::true }, thing => {
		id => $self->space_of($s, $caller) . '/zmade'
			. ++$self->{fresh} });
}

# Returns the namespace for a new repo.  If $s is the private repo, returns the
# namespace of that repo.  If $s is the public repo, returns the caller's own
# namespace, or "eve" if the caller has none.

sub space_of {
	my ($self, $s, $caller) = @_;

	return $self->{space} if $s->{name} ne 'zopenz';

	my $sub = $self->expand(Test::Xet::Rights::who($caller)) // '';

	return $sub =~ /^[A-Za-z]+$/ && !$caller->{repo} ? $sub : 'eve';
}

sub hub_delete {
	my ($self, $s, $caller, $letter) = @_;

	$s = $self->fresh($s, 'models') if allowed($letter);

	return (thing => $s, body => { name => $s->{name},
		organization => $s->{owner} }, type => 'application/json',
		headers => $self->as_bound($caller, $s, $letter));
}

sub hub_bucket_delete {
	my ($self, $s, $caller, $letter) = @_;

	$s = $self->fresh($s, 'buckets') if allowed($letter);

	return (thing => $s, headers => $self->as_bound($caller, $s, $letter));
}

sub hub_move {
	my ($self, $s, $caller, $letter) = @_;

	$s = $self->fresh($s, 'models') if allowed($letter);

	return (thing => $s, body => { fromRepo => $s->{id},
		toRepo => "$s->{owner}/zmoved" . ++$self->{fresh} },
		headers => $self->as_bound($caller, $s, $letter));
}

# Changes the visibility of a repo; if the caller is permitted, of a repo that
# was created for this request.

sub hub_settings {
	my ($self, $s, $caller, $letter, $route) = @_;

	my $private = $s->{name} ne 'zopenz';

	$s = $self->fresh($s, $route->{form} =~ /buckets/ ? 'buckets'
		: 'models') if allowed($letter);

	return (thing => $s, body => { private => $private ? JSON::PP::false
		: JSON::PP::true },
		headers => $self->as_bound($caller, $s, $letter));
}

sub hub_post_branch {
	return (rev => 'b' . ++$_[0]->{fresh});
}

sub hub_delete_branch {
	my ($self, $s, $caller, $letter) = @_;

	return (rev => 'main') unless allowed($letter);

	my $rev = 'b' . ++$self->{fresh};

	$self->send('POST', "$self->{base}/api/models/$s->{id}/branch/$rev",
		$self->admin($s->{owner}), '{}');

	return (rev => $rev);
}

sub hub_post_tag {
	return (body => { tag => 't' . ++$_[0]->{fresh} });
}

sub hub_delete_tag {
	my ($self, $s, $caller, $letter) = @_;

	return (rev => 'v1') unless allowed($letter);

	my $tag = 't' . ++$self->{fresh};

	$self->send('POST', "$self->{base}/api/models/$s->{id}/tag/main",
		$self->admin($s->{owner}), qq!{"tag":"$tag"}!);

	return (rev => $tag);
}

sub hub_preupload {
	return (body => { files => [ { path => 'a', size => 1,
		sample => 'YQ==' } ] });
}

sub hub_commit {
	my ($self, $s, $caller, $letter, $route) = @_;

	if ($route->{form} =~ /buckets/) {
		return (type => 'application/x-ndjson', body => $json->encode({
			type => 'addFile', path => 'x' . ++$self->{fresh},
			xetHash => $s->{hash}, mtime => 0 }));
	}

	return (type => 'application/x-ndjson', body => join("\n",
		map { $json->encode($_) } { key => 'header', value =>
			{ summary => 's' } }, { key => 'file', value => {
			path => 'x' . ++$self->{fresh}, encoding => 'base64',
			content => 'eA==' } }));
}

# Copies a file to a repo that the caller may write to, if there is one.

sub hub_duplicate {
	my ($self, $s, $caller) = @_;

	my $sub = lc($self->expand(Test::Xet::Rights::who($caller)) // '');
	my $to = ($caller->{repo} // '') eq 'S'
		|| ($caller->{given} // '') eq 'write'
		? $self->thing('S', $caller)->{id}
		: ($caller->{repo} // '') eq 'other'
			? $self->{scenes}{other}{id}
		: $self->{own}{$sub} // 'eve/zown';

	my $copied = $s->{copied} // '';

	return (body => { target => { type => 'model', name => $to },
		files => [ { xetHash => $copied ne ''
				? hash_file($copied)->{hash} : $s->{hash},
			sha256 => sha256_hex($copied), filename => 'a' } ] });
}

sub hub_manifest { return (rev => 'latest') }

# Requests the configuration of the only GGUF file.

sub hub_blob {
	my ($self, $s) = @_;

	return (rev => 'sha256:' . sha256_hex('{"model_format":"gguf",'
		. '"file_type":"Q4_0","architecture":"amd64","os":"linux",'
		. '"rootfs":{"type":"layers","diff_ids":["sha256:'
		. sha256_hex("GGUF $s->{name}") . '"]}}'));
}

sub hub_paths {
	return (body => { paths => [ 'd/f.bin' ] });
}

sub hub_lfs_batch {
	my ($self, $s, $caller, $letter, $route) = @_;

	my $upload = ($route->{more}{as} // '') eq 'upload';

	return (type => 'application/vnd.git-lfs+json', body => {
		operation => $upload ? 'upload' : 'download', objects => [
		{ oid => $upload ? 'cd' x 32 : $s->{sha256},
			size => $s->{size} } ] });
}

sub hub_git { return (args => '?service=git-upload-pack') }
sub hub_yaml { return (body => { content => '# m' }) }
sub hub_list { return (args => '?search=zse&limit=100') }

# --------------------------------------------------------------------------
# the API

sub api_request {
	my ($self, $place, $route, $method, $caller, $thing, $letter) = @_;

	my $handler = $self->handler('api', $route->{form}, $method);
	my $s = $self->thing($thing, $caller);
	my $make = $self->can("api_$handler");
	my %o = $make ? $make->($self, $s, $caller, $letter, $route, $place)
		: ();
	my $version = $route->{version} eq '' ? '' : "/$route->{version}";

	return ($method, "$place$version/" . api_path($route, $s, \%o),
		{ 'Content-Type' => 'application/json',
			$o{headers} ? %{ $o{headers} } : () },
		defined $o{body} ? $o{body} : $method =~ /^P/ ? '{}' : undef);
}

sub api_path {
	my ($route, $s, $o) = @_;

	my %parts = (prefix => 'default', grant => 'ab' x 32,
		hash => $o->{hash} // ($route->{form} =~ /^zt/ ? $s->{zt_hash}
			: $s->{hash}));

	return $route->{form} =~ s/:(\w+)/$parts{$1}/gr . ($o->{args} // '');
}

sub api_batch {
	my ($self, $s) = @_;

	return (args => "?file_id=$s->{hash}");
}

sub api_chunk_hashes {
	return (headers => { 'X-Range-Dirty' => 'bytes=0-9' });
}

sub api_chunk { return (hash => $_[1]->{chunk}) }
sub api_xorb_head { return (hash => $_[1]->{xorb}) }
sub api_xorb_get { return (hash => $_[1]->{xorb}) }

sub api_zt_object { return (args => '?i=0') }
sub api_zt_data { return (args => '?i=0') }
sub api_zt_reconstruction { return (args => '?i=0') }

# Makes new content: a xorb, and a shard with a file of that xorb.

sub content {
	my ($self) = @_;

	return $self->{content} if $self->{content};

	my $xorb = make_xorb(random_bytes(99, 5000));

	return $self->{content} = { xorb => $xorb,
		shard => make_shard({ files => [ { terms => [ {
			xorb => $xorb->{hash}, start => 0,
			end => scalar @{ $xorb->{chunks} } } ],
			verification => JSON::PP::true } ],
			xorbs => [ $xorb ] }) };
}

sub api_xorb_post {
	my ($self) = @_;

	my $xorb = $self->content()->{xorb};

	return (hash => $xorb->{hash}, body => $xorb->{bytes});
}

# Returns the hash of a xorb that no caller has sent.

sub api_grant {
	return (hash => 'ef' x 32);
}

sub api_grant_commit {
	return (hash => 'ef' x 32);
}

# Returns the body of a shard.  If the caller is permitted, sends the xorb
# first: the repo must have the xorb, or already have the file.

sub api_shard {
	my ($self, $s, $caller, $letter, $route, $place) = @_;

	my $c = $self->content();

	$self->send('POST', "$place/v1/xorbs/default/$c->{xorb}{hash}",
		$self->headers($caller), $c->{xorb}{bytes})
		if allowed($letter);

	return (body => $c->{shard}{bytes});
}

sub api_file_put {
	my ($self) = @_;

	return (body => 'zputz' . ++$self->{fresh});
}

# Uploads a file for the tested request to delete, to the repo of the caller's
# token, and returns the hash.  Does nothing if the caller is not permitted.

sub api_file_delete {
	my ($self, $s, $caller, $letter, $route, $place) = @_;

	return () unless allowed($letter);

	my $hash = $self->send('PUT', "$place/v1/files",
		$self->headers($caller), 'zgoesz' . ++$self->{fresh})
		->json()->{hash};

	return (hash => $hash);
}

sub api_repo_delete {
	my ($self, $s, $caller, $letter, $route, $place) = @_;

	return () unless allowed($letter);

	my $as = $self->headers({ %$caller, fresh => 1,
		repo => 'zdrop/z' . ++$self->{fresh} });

	$self->send('PUT', "$place/v1/files", $as, 'zgoesz');

	return (headers => $as);
}

sub api_telemetry {
	return (body => '{"event":"zeventz","metrics":{"n":1}}');
}

1;
