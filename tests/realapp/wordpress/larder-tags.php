<?php
// Plugin Name: Purges of larder, by tag
// wp-config.php defines LARDER, its address such as http://127.0.0.1:8080, and LARDER_TOKEN, the token of its site.

// Each page says what it shows.
add_action( 'wp', function () {
	$shown = is_singular() ? 'post-' . get_queried_object_id() : 'lists';
	header( "X-Cache-Tags: site $shown" );
} );

// Purges at the end of the request: all of the change is in the database then.
function larder_purge( string ...$tags ): void {
	static $purged = array();
	$purged || add_action( 'shutdown', function () use ( &$purged ) {
		$home   = wp_parse_url( home_url() );
		$fields = array(
			'Host'                 => $home['host'] . ( isset( $home['port'] ) ? ":$home[port]" : '' ),
			'Authorization'        => 'Bearer ' . LARDER_TOKEN,
			'X-Cache-Tags-Pattern' => implode( '|', array_unique( $purged ) ),
		);
		wp_remote_request( LARDER . '/', array( 'method' => 'PURGE', 'headers' => $fields ) );
	} );
	array_push( $purged, ...$tags );
}

// A menu, a template or a block may be on any page.
function larder_changed( ?WP_Post $post ): void {
	if ( $post && 'publish' === $post->post_status ) {
		is_post_type_viewable( $post->post_type ) ? larder_purge( "post-$post->ID", 'lists' ) : larder_purge( 'site' );
	}
}

add_action( 'wp_after_insert_post', fn( $id, $post, $update, $before ) => array_map( 'larder_changed', array( $post, $before ) ), 10, 4 );
add_action( 'before_delete_post', fn( $id, $post ) => larder_changed( $post ), 10, 2 );
add_action( 'wp_update_comment_count', fn( $id ) => larder_changed( get_post( $id ) ) );
add_action( 'edit_comment', fn( $id ) => larder_changed( get_post( get_comment( $id )->comment_post_ID ) ) );
foreach ( array( 'wp_update_nav_menu', 'edited_term', 'switch_theme', 'customize_save_after', 'update_option_blogname', 'update_option_sidebars_widgets' ) as $hook ) {
	add_action( $hook, fn() => larder_purge( 'site' ) );
}
